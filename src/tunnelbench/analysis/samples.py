"""Many samples at once: those of one size are rows of one matrix."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

Values = NDArray[np.float64]


class Interval(NamedTuple):
    """The ends of a confidence interval."""

    low: float
    high: float


def samples_of(lists: pl.Series) -> list[Values]:
    """The lists of a column, without nulls in them."""
    sizes = lists.list.len()
    values = lists.filter(sizes > 0).explode().to_numpy()
    return np.split(values, np.cumsum(sizes))[:-1]


def intervals_of(
    samples: Sequence[Values], ends: Callable[[Values], tuple[Values, Values]], together: int
) -> list[Interval | None]:
    """The interval of each sample; None for fewer than two values.

    `ends` finds the lower and upper ends for the rows of a matrix, each sorted, of which it gets at most so
    many `together`.
    """
    found: list[Interval | None] = [None] * len(samples)
    by_size: dict[int, list[int]] = {}
    for place, sample in enumerate(samples):
        if sample.size > 1:
            by_size.setdefault(sample.size, []).append(place)
    for places in by_size.values():
        for start in range(0, len(places), together):
            chunk = places[start : start + together]
            low, high = ends(np.sort([samples[place] for place in chunk], axis=1))
            for place, *both in zip(chunk, low.tolist(), high.tolist(), strict=True):
                found[place] = Interval(*both)
    return found
