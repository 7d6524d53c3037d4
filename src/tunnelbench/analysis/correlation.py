"""How far two orders agree: rank correlations with intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from scipy import special, stats  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.intervals import CONFIDENCE
from tunnelbench.analysis.samples import Interval

_stats = cast(Any, stats)


@dataclass(frozen=True)
class RankCorrelation:
    """Of two orders of the same things: 1 where they are the same, -1 where one is the other reversed."""

    n: int
    tau: float
    """M. G. Kendall, Biometrika 30, 1938; tau-b, which minds ties. NaN where all of an order is tied."""
    tau_interval: Interval | None
    tau_p_value: float
    rho: float
    """C. Spearman, American Journal of Psychology 15, 1904."""
    rho_interval: Interval | None


def rank_correlation(
    first: Iterable[float], second: Iterable[float], confidence: float = CONFIDENCE
) -> RankCorrelation:
    """Kendall's and Spearman's rank correlation of two sequences of equal length, of two or more.

    Intervals by Fisher's transformation with the variances 0.437 / (n - 4) for tau and 1.06 / (n - 3) for rho
    (E. C. Fieller, H. O. Hartley and E. S. Pearson, Biometrika 44, 1957); None for four things or fewer.
    """
    one, other = np.array(list(first), dtype=np.float64), np.array(list(second), dtype=np.float64)
    n = int(one.size)
    tau = _stats.kendalltau(one, other)
    rho = float(_stats.spearmanr(one, other).statistic) if n > 1 else math.nan
    return RankCorrelation(
        n,
        float(tau.statistic),
        _interval(float(tau.statistic), 0.437, n - 4, confidence),
        float(tau.pvalue),
        rho,
        _interval(rho, 1.06, n - 3, confidence),
    )


def _interval(coefficient: float, factor: float, freedom: int, confidence: float) -> Interval | None:
    if freedom < 1 or math.isnan(coefficient):
        return None
    if abs(coefficient) > 1 - 1e-12:
        return Interval(coefficient, coefficient)
    half = float(special.ndtri((1 + confidence) / 2)) * math.sqrt(factor / freedom)
    middle = math.atanh(coefficient)
    return Interval(math.tanh(middle - half), math.tanh(middle + half))
