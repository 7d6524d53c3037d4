"""Where the start of a trial ends: how many samples of a throughput series are not yet like the rest.

K. P. White, An Effective Truncation Heuristic for Bias Reduction in Simulation Output, Simulation 69, 1997
(MSER): cut where the standard error of the mean of what remains is least. MSER alone cuts into plain noise,
too, so what it would cut must also differ from the rest, by a Mann-Whitney test and more than negligibly.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

SIGNIFICANCE = 0.01
NEGLIGIBLE = 0.02
"""Of the mean of the rest."""
FEWEST_LEFT = 5
"""Samples; the standard error of fewer says nothing."""

_stats = cast(Any, stats)


@dataclass(frozen=True)
class WarmUp:
    """What to cut off a series."""

    samples: int
    """How many at the start; at most half of all."""
    is_settled: bool
    """False where the series is still changing in its second half: nothing that is cut makes it steady."""


def warm_up(series: ArrayLike, batch: int = 1) -> WarmUp:
    """The warm-up of a series of equally long steps, such as Mbit/s in each tenth of a second.

    `batch` samples are averaged first: 5 is White's MSER-5, for long series of correlated samples. Nothing is
    cut from a series of fewer than ten batches, which is taken for settled.
    """
    samples = np.asarray(series, dtype=np.float64)
    batches = samples[: samples.size // batch * batch].reshape(-1, batch).mean(axis=1)
    if batches.size < 2 * FEWEST_LEFT:
        return WarmUp(0, is_settled=True)
    cut = int(np.argmin(_squared_standard_errors(batches)))
    if not _differ(batches[:cut], batches[cut:]):
        return WarmUp(0, is_settled=True)
    half = batches.size // 2
    return WarmUp(min(cut, half) * batch, is_settled=cut <= half)


def _squared_standard_errors(batches: NDArray[np.float64]) -> NDArray[np.float64]:
    """MSER by how many are cut, leaving at least FEWEST_LEFT."""
    backwards = batches[::-1] - batches.mean()  # centred, lest large numbers cancel
    count = np.arange(1, batches.size + 1)
    squares = np.cumsum(backwards**2) - np.cumsum(backwards) ** 2 / count
    return (np.maximum(squares, 0) / count**2)[FEWEST_LEFT - 1 :][::-1]


def _differ(start: NDArray[np.float64], rest: NDArray[np.float64]) -> bool:
    if start.size == 0 or abs(start.mean() - rest.mean()) <= NEGLIGIBLE * abs(rest.mean()):
        return False
    if start.size < 3:  # for which no rank test can reach the significance: beyond all of the rest is enough
        return bool((start < rest.min()).all() or (start > rest.max()).all())
    return float(_stats.mannwhitneyu(start, rest).pvalue) <= SIGNIFICANCE
