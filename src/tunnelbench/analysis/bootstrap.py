"""Bootstrap intervals of means, bias-corrected and accelerated (BCa), of many samples at once.

B. Efron, Better Bootstrap Confidence Intervals, Journal of the American Statistical Association 82, 1987;
formulas of B. Efron and R. Tibshirani, An Introduction to the Bootstrap, 1993, section 14.3. The acceleration
is that of the jackknife, which for a mean is closed. The same resamples, from a fixed seed, serve all samples
of one size, so that equal data always give equal intervals, in whatever order.

With few values any bootstrap interval of a mean is too narrow: with five, one of 95 % holds the truth in
about 85 %. It is for tables beside published means; comparisons rest on other intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy import special  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.intervals import CONFIDENCE
from tunnelbench.analysis.samples import Interval, intervals_of

RESAMPLES = 4000
"""Ends are then sure to about a tenth of the standard error (Efron and Tibshirani ask for 1000 or more)."""

_SEED = 1987
_TOGETHER = 500
"""Samples that are worked on at once: two million resampled means."""


def mean_intervals(
    samples: Sequence[NDArray[np.float64]], confidence: float = CONFIDENCE
) -> list[Interval | None]:
    """The BCa interval of the mean of each sample; None for fewer than two values."""
    return intervals_of(samples, lambda ordered: _of_equal_size(ordered, confidence), _TOGETHER)


def _of_equal_size(
    values: NDArray[np.float64], confidence: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the intervals of the rows."""
    size = values.shape[1]
    mean = values.mean(axis=1)
    apart = values - mean[:, None]
    square = (apart**2).sum(axis=1)
    alike = square <= (1e-12 * np.abs(mean)) ** 2 * size
    with np.errstate(divide="ignore", invalid="ignore"):
        acceleration = np.where(alike, 0.0, (apart**3).sum(axis=1) / (6 * square**1.5))
    # Deviations are resampled rather than values, so that rounding can't order equal means.
    means = np.sort(apart @ _weights(size).T, axis=1)
    slack = 1e-9 * np.sqrt(square / size)[:, None]
    below = (means < -slack).mean(axis=1) + (np.abs(means) <= slack).mean(axis=1) / 2
    bias = special.ndtri(np.clip(below, 0.5 / RESAMPLES, 1 - 0.5 / RESAMPLES))
    ends: list[NDArray[np.float64]] = []
    for tail in ((1 - confidence) / 2, (1 + confidence) / 2):
        corrected = bias + special.ndtri(tail)
        share = special.ndtr(bias + corrected / (1 - acceleration * corrected))
        ends.append(mean + np.where(alike, 0.0, _quantile(means, share)))
    return ends[0], ends[1]


def _quantile(ordered: NDArray[np.float64], share: NDArray[np.float64]) -> NDArray[np.float64]:
    """A quantile of each row, each at its own share, linear between neighbours."""
    place = share * (ordered.shape[1] - 1)
    below = np.floor(place).astype(np.intp)
    above = np.minimum(below + 1, ordered.shape[1] - 1)
    rows = np.arange(len(ordered))
    return ordered[rows, below] + (place - below) * (ordered[rows, above] - ordered[rows, below])


@lru_cache(maxsize=32)
def _weights(size: int) -> NDArray[np.float64]:
    """`[b, i]`: the share of value i in resample b."""
    generator = np.random.default_rng((_SEED, size))
    return generator.multinomial(size, np.full(size, 1 / size), RESAMPLES) / size
