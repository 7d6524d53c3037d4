"""Tunnels that can't be told apart: Scott and Knott's tiers."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray
from scipy import special  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.frames import TREATMENT, TRIALS
from tunnelbench.analysis.observations import PLACE, Matrix, matrices

SIGNIFICANCE = 0.05
NEGLIGIBLE_EFFECT = 0.2
"""Standard deviations; what Cohen calls less than small."""

GROUPS = pl.Schema(
    {**{name: TRIALS[name] for name in (*PLACE, *TREATMENT)}, "mean": pl.Float64, "tier": pl.Int64}
)
"""Columns of `groups`."""


def groups(values: pl.DataFrame, metric: str = "throughput", *, less_is_better: bool = False) -> pl.DataFrame:
    """The tier of every treatment at its place, best first, from `frames.instance_values`.

    Columns: those of `observations.PLACE`, those of `frames.TREATMENT`, `mean` (geometric, in the unit of the
    metric) and `tier`: 1 for the best and those that can't be told from it, 2 for the next, and so on. Tiers
    are Scott-Knott ESD's.
    """
    return tiers_of(matrices(values, metric), less_is_better=less_is_better)


def tiers_of(places: Iterable[Matrix], *, less_is_better: bool = False) -> pl.DataFrame:
    """The same from the matrix of each place."""
    found: list[pl.DataFrame] = [pl.DataFrame(schema=GROUPS)]
    for matrix in places:
        tiers = scott_knott(-matrix.values if less_is_better else matrix.values)
        place = [pl.lit(value, TRIALS[column]).alias(column) for column, value in matrix.place.items()]
        means = np.exp(np.nanmean(matrix.values, axis=0))
        here = matrix.treatments.with_columns(
            *place, pl.Series("mean", means), pl.Series("tier", tiers, pl.Int64)
        )
        order = pl.col("mean") if less_is_better else -pl.col("mean")
        found.append(here.sort("tier", order).select(GROUPS.names()))
    return pl.concat(found)


def scott_knott(values: ArrayLike, significance: float = SIGNIFICANCE) -> list[int]:
    """The tier of each column of `[round, treatment]`, 1 for the largest mean; NaN is missing.

    A. J. Scott and M. Knott, A Cluster Analysis Method for Grouping Means in the Analysis of Variance,
    Biometrics 30, 1974: the ordered means are split where the groups differ most, again and again, as long as
    a likelihood ratio test says that they do. The error is that of a randomised block design, with rounds as
    blocks. ESD (C. Tantithamthavorn and others, IEEE Transactions on Software Engineering 43, 2017):
    neighbouring tiers that differ by less than 0.2 standard deviations are one. One tier without repeats.
    """
    matrix = np.asarray(values, dtype=np.float64)
    columns = matrix.shape[1]
    fit = _blocks_and_treatments(matrix)
    if fit is None or columns < 2:
        return [1] * columns
    means, mean_square, freedom = fit
    repeats = columns / float((1 / (~np.isnan(matrix)).sum(axis=0)).sum())
    order = np.argsort(-means, kind="stable")
    clusters = _split(means[order], mean_square / repeats, freedom, significance)
    merged = _merge_negligible(means[order], clusters, math.sqrt(mean_square))
    tiers = [0] * columns
    for tier, cluster in enumerate(merged, 1):
        for place in range(*cluster):
            tiers[order[place]] = tier
    return tiers


def _blocks_and_treatments(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], float, int] | None:
    """Effects of the columns adjusted for rows, mean square and degrees of freedom of the error."""
    present = (~np.isnan(matrix)).astype(np.float64)
    by_row = np.maximum(present.sum(axis=1), 1)
    filled = np.nan_to_num(matrix, nan=0.0)
    apart: NDArray[np.float64] = (filled - (filled.sum(axis=1) / by_row)[:, None]) * present
    # Normal equations of the columns, with the rows eliminated.
    weights: NDArray[np.float64] = np.diag(present.sum(axis=0)) - present.T @ (present / by_row[:, None])
    right: NDArray[np.float64] = apart.sum(axis=0)
    effects, _, rank, _ = np.linalg.lstsq(weights, right, rcond=1e-10)
    freedom = int(present.sum()) - int(present.any(axis=1).sum()) - int(rank)
    if freedom < 1:
        return None
    error = max(float((apart**2).sum() - effects @ right), 0.0)
    return effects.astype(np.float64), error / freedom, freedom


Cluster = tuple[int, int]
"""First and one past the last of the ordered means."""


def _split(means: NDArray[np.float64], variance: float, freedom: int, significance: float) -> list[Cluster]:
    def split(start: int, end: int) -> list[Cluster]:
        here = means[start:end]
        count = here.size
        if count < 2:
            return [(start, end)]
        sizes = np.arange(1, count)
        left = np.cumsum(here)[:-1]
        right = here.sum() - left
        between = left**2 / sizes + right**2 / (count - sizes) - here.sum() ** 2 / count
        best = int(np.argmax(between))
        spread = float(((here - here.mean()) ** 2).sum())
        estimate = (spread + freedom * variance) / (count + freedom)
        if estimate <= 0:
            return [(start, end)]
        statistic = math.pi / (2 * (math.pi - 2)) * max(float(between[best]), 0.0) / estimate
        if float(special.gammaincc(count / (math.pi - 2) / 2, statistic / 2)) > significance:
            return [(start, end)]
        middle = start + best + 1
        return [*split(start, middle), *split(middle, end)]

    return split(0, int(means.size))


def _merge_negligible(means: NDArray[np.float64], clusters: list[Cluster], deviation: float) -> list[Cluster]:
    merged = [clusters[0]]
    for start, end in clusters[1:]:
        last_start, last_end = merged[-1]
        apart = float(means[last_start:last_end].mean() - means[start:end].mean())
        if apart < NEGLIGIBLE_EFFECT * deviation:
            merged[-1] = (last_start, end)
        else:
            merged.append((start, end))
    return merged
