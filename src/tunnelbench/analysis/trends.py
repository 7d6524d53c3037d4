"""How a metric moves along an ordered factor: tests of a trend, and the best fit of a rise and a fall."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, stats  # pyright: ignore[reportMissingTypeStubs]

_stats = cast(Any, stats)
_optimize = cast(Any, optimize)


def page(blocks: ArrayLike) -> float:
    """One-sided p-value of Page's test that values rise from column to column, the same in each row.

    E. B. Page, Ordered Hypotheses for Multiple Treatments, Journal of the American Statistical Association
    58, 1963. Rows are blocks, three columns or more; exact for few of them (scipy). 1 for no row.
    """
    matrix = np.asarray(blocks, dtype=np.float64)
    if matrix.shape[0] == 0 or matrix.shape[1] < 3:
        return 1.0
    if matrix.shape[0] == 1:  # for which scipy has no answer: Page's statistic of one row is Spearman's
        return float(_stats.spearmanr(np.arange(matrix.shape[1]), matrix[0], alternative="greater").pvalue)
    return float(_stats.page_trend_test(matrix).pvalue)


@dataclass(frozen=True)
class Unimodal:
    """The best rise and fall through some values."""

    peak: int
    """Index of the highest; the first of several."""
    explained: float
    """Share of the variance that it explains, 0 to 1."""


def unimodal(values: ArrayLike) -> Unimodal:
    """The least-squares fit that rises up to a peak and falls from there.

    Isotonic regression on each side of every possible peak (R. E. Barlow and others, Statistical Inference
    under Order Restrictions, 1972; for unimodal fits Q. F. Stout, Computational Statistics & Data Analysis
    53, 2008).
    """
    heights = np.asarray(values, dtype=np.float64)
    total = float(((heights - heights.mean()) ** 2).sum())
    best_peak, best_error = 0, math.inf
    for peak in range(heights.size):
        rise = _isotonic(heights[: peak + 1])
        fall = _isotonic(heights[peak + 1 :][::-1])[::-1]
        fitted = np.concatenate([rise, fall])
        error = float(((heights - fitted) ** 2).sum())
        if fitted[peak] >= fitted.max() and error < best_error - 1e-12 * max(total, 1e-300):
            best_peak, best_error = peak, error
    return Unimodal(best_peak, 1.0 if total == 0 else 1 - best_error / total)


def _isotonic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    if values.size == 0:
        return values
    return np.asarray(_optimize.isotonic_regression(values).x, dtype=np.float64)
