"""The bootstrap interval of a median, computed exactly.

Why the median: one disturbed round can't move it far, and with the few instances of a campaign its interval
holds the truth more often than that of the mean. Why percentiles and not BCa: BCa needs the jackknife, which
is inconsistent for the median (B. Efron and R. Tibshirani, An Introduction to the Bootstrap, 1993, section
11.6). Why exactly: the distribution of the median of a resample is known (B. Efron, Bootstrap Methods:
Another Look at the Jackknife, The Annals of Statistics 7, 1979, section 3), so it needs no random numbers,
and equal data always give equal intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import lgamma

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.samples import Interval, intervals_of

CONFIDENCE = 0.95

_ROUNDING = 1e-12
"""Probabilities are sums of up to n squared products; they are compared with this slack."""
_TOGETHER = 500
"""Samples that are worked on at once."""


def median_interval(values: ArrayLike, confidence: float = CONFIDENCE) -> Interval | None:
    """The percentile bootstrap interval of the median of independent values; None for fewer than two.

    It reaches from the smallest to the largest value where there are few: see `attainable_confidence`.
    """
    return median_intervals([np.asarray(values, dtype=np.float64)], confidence)[0]


def median_intervals(
    samples: Sequence[NDArray[np.float64]], confidence: float = CONFIDENCE
) -> list[Interval | None]:
    """The same of each of many samples."""
    return intervals_of(samples, lambda ordered: _ends(ordered, confidence), _TOGETHER)


def attainable_confidence(count: int) -> float:
    """The confidence with which the range of `count` independent values holds the median of their source.

    It misses only if all fall on one side, which has probability 1/2^n for each side: 1 - 2^(1-n) (H. A.
    David and H. N. Nagaraja, Order Statistics, 3rd edition, 2003, section 7.1). No interval inside it can
    promise more.
    """
    return 1 - 2.0 ** (1 - count) if count else 0.0


def _ends(ordered: NDArray[np.float64], confidence: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ends of the intervals of the rows."""
    end = _low_end(ordered.shape[1], confidence)
    last = ordered.shape[1] - 1
    # What a resample has in its middle is as likely from above as from below.
    low = end.of(_middles(ordered, end.lower, end.upper))
    high = -end.of(-_middles(ordered, last - end.upper, last - end.lower))
    return low, high


@dataclass(frozen=True)
class _LowEnd:
    """Where in sorted values the low end of an interval can be: a few pairs, found by counting alone."""

    lower: NDArray[np.intp]
    upper: NDArray[np.intp]
    probabilities: NDArray[np.float64]
    missing: float
    """The probability that these pairs have to reach together, from the lowest median on."""

    def of(self, medians: NDArray[np.float64]) -> NDArray[np.float64]:
        """The end for each row, from its medians of the pairs."""
        order = np.argsort(medians, axis=1)
        reached = np.cumsum(self.probabilities[order], axis=1)
        enough = (reached < self.missing).sum(axis=1)[:, None]
        return np.take_along_axis(medians, np.take_along_axis(order, enough, axis=1), axis=1)[:, 0]


@lru_cache(maxsize=64)
def _low_end(count: int, confidence: float) -> _LowEnd:
    """The median of a pair is neither below its lower value nor above its upper one.

    So the end is not below value `first`, as long as too few pairs have a lower one; nor above value `last`,
    once enough pairs lie up to there with both. Pairs wholly below or above these need not be ordered.
    """
    tail = (1 - confidence) / 2 - _ROUNDING
    lower, upper, probabilities = _middle_pairs(count)
    begin_up_to = np.cumsum(np.bincount(lower, probabilities, count))
    end_up_to = np.cumsum(np.bincount(upper, probabilities, count))
    # Sums in another order may differ by their rounding.
    first = int(np.searchsorted(begin_up_to, tail - _ROUNDING / 2))
    last = int(np.searchsorted(end_up_to, tail + _ROUNDING / 2))
    below = upper < first
    near = ~below & (lower <= last)
    return _LowEnd(lower[near], upper[near], probabilities[near], tail - float(probabilities[below].sum()))


def _middles(
    ordered: NDArray[np.float64], lower: NDArray[np.intp], upper: NDArray[np.intp]
) -> NDArray[np.float64]:
    low = ordered[:, lower]
    return low + (ordered[:, upper] - low) / 2


def _middle_pairs(
    count: int,
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]:
    """Places and probability of the pairs of sorted values that a resample may well have in its middle.

    With many values that is a small part of all pairs; the others together have less than `_ROUNDING`.
    """
    probabilities = _middle_pair_probabilities(count)
    lower, upper = np.nonzero(np.triu(probabilities > _ROUNDING / count**2))
    return lower, upper, probabilities[lower, upper]


def _middle_pair_probabilities(count: int) -> NDArray[np.float64]:
    """`[i, j]`: the probability that a resample of n sorted values has values i and j (from 0) in its middle.

    They are the same draw if n is odd. A resample draws n times, each value with probability 1/n.
    """
    half = (count + 1) // 2
    up_to = np.arange(count + 1) / count
    # The draw of rank `half` is at most value i if at least `half` draws are.
    lower_is = np.diff(_at_least(half, count, up_to))
    if count % 2 == 1:
        return np.diag(lower_is)
    # For i < j: `half` draws up to i, one of them i itself, and `half` from j on, one of them j itself.
    with np.errstate(divide="ignore"):
        log_highest_is = np.log(np.diff(up_to**half))
    log_ways = lgamma(count + 1) - 2 * lgamma(half + 1)
    log_pairs = log_ways + np.add.outer(log_highest_is, log_highest_is[::-1])
    pairs = np.triu(np.exp(np.minimum(log_pairs, 0)), k=1)  # only pairs that can't be are above 0
    return pairs + np.diag(lower_is - pairs.sum(axis=1))


def _at_least(successes: int, draws: int, probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability of at least so many successes in independent draws."""
    tail: NDArray[np.float64] = special.betainc(successes, draws - successes + 1, probability)
    return tail
