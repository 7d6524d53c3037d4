"""Two groups of results compared under the same conditions, round by round.

A *condition* is what the groups share: every column of a cell that they don't differ in. Within a round, the
values of a group at a condition are averaged, and the difference of both groups is taken there. The round is
the replicate and its conditions are not, because they have the same machine at the same time in common: so
the differences are averaged over the conditions of a round, and the test is over rounds. Where a round lacks
a condition, the mean of that condition over the other rounds stands in its place, so that the mean over
rounds is about the same conditions in each.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tunnelbench.analysis.findings.scope import NotTestableError
from tunnelbench.analysis.frames import CELL
from tunnelbench.analysis.paired import Difference, difference

FOLLOWS = {
    "vpn": ("suite", "options", "outer_ip"),
    "suite": ("options",),
    "transport": ("rate", "streams", "sending", "congestion_control"),
}
"""Columns whose levels are not the same thing where another column differs."""


@dataclass(frozen=True)
class Contrast:
    """One group against another."""

    first: str
    """Its name."""
    second: str
    difference: Difference
    """Of logarithms: above zero where the first has more."""
    first_level: Difference
    """Logarithm of the first's own values, over rounds."""
    second_level: Difference
    conditions: int
    agreeing: int
    """Conditions in which the mean difference has the sign of the whole."""
    is_relative: bool
    """Whether the values are ratios to plain IP, because the groups never ran in the same runtime."""


def contrast(
    first: pl.DataFrame,
    second: pl.DataFrame,
    names: tuple[str, str],
    varying: Collection[str],
    by_ratios: bool = False,
) -> Contrast:
    """The first group against the second; `varying` are the columns that they are told apart by.

    By their own values if they ever ran in the same runtime, unless `by_ratios` asks for ratios to plain IP.
    Raises NotTestableError where they share no condition in any round.
    """
    free = set(varying).union(*(FOLLOWS.get(column, ()) for column in varying))
    attempts = [(free, "value")]
    if "transport" in free:
        attempts.append((free | {"payload_bytes"}, "value"))  # a TCP write is not a datagram
    attempts.append((attempts[-1][0] | {"runtime"}, "ratio"))
    for columns, value in attempts[-1:] if by_ratios else attempts:
        keys = ["campaign_round", *(column for column in CELL if column not in columns)]
        pairs = _means(first, keys, value, "first").join(
            _means(second, keys, value, "second"), on=keys, how="inner", nulls_equal=True
        )
        if not pairs.is_empty():
            return _contrast(pairs, keys[1:], names, value == "ratio")
    raise NotTestableError(f"no conditions were measured with both {names[0]} and {names[1]}")


def levels_of(contrasts: Iterable[Contrast]) -> dict[str, Difference]:
    """What each group of some contrasts has, by its name, as the first contrast with it says."""
    levels: dict[str, Difference] = {}
    for found in contrasts:
        levels.setdefault(found.first, found.first_level)
        levels.setdefault(found.second, found.second_level)
    return levels


def by_round(frame: pl.DataFrame, keys: list[str], value: str) -> NDArray[np.float64]:
    """A column's mean over the conditions of each round, corrected for conditions that a round lacks."""
    centred = frame.with_columns(expected=pl.col(value).mean().over(keys))
    whole = float(centred.group_by(keys).agg(pl.col("expected").first())["expected"].mean())  # type: ignore[arg-type]
    deviations = centred.group_by("campaign_round").agg((pl.col(value) - pl.col("expected")).mean())
    return deviations.sort("campaign_round")[value].to_numpy() + whole


def _means(values: pl.DataFrame, keys: list[str], value: str, name: str) -> pl.DataFrame:
    usable = values.filter(pl.col(value).is_not_null() & (pl.col(value) > 0))
    return usable.group_by(keys).agg(pl.col(value).log().mean().alias(name))


def _contrast(pairs: pl.DataFrame, keys: list[str], names: tuple[str, str], is_relative: bool) -> Contrast:
    pairs = pairs.with_columns(apart=pl.col("first") - pl.col("second"))
    whole = difference(by_round(pairs, keys, "apart"))
    means = pairs.group_by(keys).agg(pl.col("apart").mean())["apart"].to_numpy()
    return Contrast(
        *names,
        difference=whole,
        first_level=difference(by_round(pairs, keys, "first")),
        second_level=difference(by_round(pairs, keys, "second")),
        conditions=len(means),
        agreeing=int((np.sign(means) == np.sign(whole.mean)).sum()),
        is_relative=is_relative,
    )
