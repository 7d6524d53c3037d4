"""How a metric moves along an ordered factor: tests of a trend, and the best fit of a rise and a fall."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize, special, stats  # pyright: ignore[reportMissingTypeStubs]

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


def jonckheere(groups: Sequence[ArrayLike]) -> float:
    """One-sided p-value of the Jonckheere-Terpstra test that values rise from group to group.

    A. R. Jonckheere, Biometrika 41, 1954; for samples without blocks. Normal approximation with the variance
    for ties of M. Hollander and D. A. Wolfe, Nonparametric Statistical Methods, 2nd edition, 1999, 6.2.
    """
    samples = [np.asarray(group, dtype=np.float64) for group in groups]
    statistic = 0.0
    for place, lower in enumerate(samples):
        for upper in samples[place + 1 :]:
            apart = upper[None, :] - lower[:, None]
            statistic += float((apart > 0).sum() + (apart == 0).sum() / 2)
    sizes = np.array([sample.size for sample in samples], dtype=np.float64)
    ties = np.unique(np.concatenate(samples), return_counts=True)[1].astype(np.float64)
    n = float(sizes.sum())
    expected = (n**2 - (sizes**2).sum()) / 4

    def cubic(counts: NDArray[np.float64]) -> float:
        return float((counts * (counts - 1) * (2 * counts + 5)).sum())

    def falling(counts: NDArray[np.float64], depth: int) -> float:
        return float(np.prod([counts - step for step in range(depth)], axis=0).sum())

    variance = (n * (n - 1) * (2 * n + 5) - cubic(sizes) - cubic(ties)) / 72
    if n > 2:
        variance += falling(sizes, 3) * falling(ties, 3) / (36 * n * (n - 1) * (n - 2))
    variance += falling(sizes, 2) * falling(ties, 2) / (8 * n * (n - 1))
    return 1.0 if variance <= 0 else float(special.ndtr((expected - statistic) / math.sqrt(variance)))


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
