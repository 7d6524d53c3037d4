"""What was measured in each cell, over its instances."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import polars as pl

from tunnelbench.analysis.bootstrap import mean_intervals
from tunnelbench.analysis.frames import CELL, instance_values
from tunnelbench.analysis.intervals import CONFIDENCE, median_intervals
from tunnelbench.analysis.ratio import PAIRING, with_ratio
from tunnelbench.analysis.samples import Interval, samples_of


def summarise(
    trials: pl.DataFrame, confidence: float = CONFIDENCE, means_of: Collection[str] | None = None
) -> pl.DataFrame:
    """One row per cell, runtime and metric, in the order of their first trial.

    `means_of`: the metrics whose means have intervals, which take the most time; all where not given.

    Takes `frames.TRIALS`. Columns besides those of `frames.CELL` and `metric`, in the unit of the metric:

    - `n_instances`, `n_trials`: counted instances and their trials;
    - `median`, `mean`: over the instances;
    - `standard_deviation`: of the instances (n - 1 in the denominator), null for one;
    - `coefficient_of_variation`: standard deviation / mean, null for one instance or a mean of zero;
    - `low`, `high`: bootstrap interval of the median, null for one instance;
    - `mean_low`, `mean_high`: BCa bootstrap interval of the mean, null for one instance;
    - `ratio`, `ratio_low`, `ratio_high`: median of the ratios to the same round's baseline, and its interval;
    - `mean_ratio`, `mean_ratio_low`, `mean_ratio_high`: their mean, and its BCa interval;
    - `n_paired`: instances that have such a baseline.
    """
    return summarise_values(instance_values(trials), confidence, means_of)


def summarise_values(
    values: pl.DataFrame,
    confidence: float = CONFIDENCE,
    means_of: Collection[str] | None = None,
    cell: Sequence[str] = CELL,
    pairing: Sequence[str] = PAIRING,
) -> pl.DataFrame:
    """The same from `frames.instance_values`, of which other columns may tell cells apart (`cell`) and say
    what a value shares with its baseline (`pairing`)."""
    values = with_ratio(values, pairing)
    value, ratio = pl.col("value"), pl.col("ratio")
    cells = values.group_by(*cell, "metric", maintain_order=True).agg(
        pl.len().alias("n_instances"),
        pl.col("n_trials").sum(),
        value.median().alias("median"),
        value.mean().alias("mean"),
        value.std(ddof=1).alias("standard_deviation"),
        value.alias("values"),
        ratio.median().alias("median_ratio"),
        ratio.mean().alias("mean_ratio"),
        ratio.count().alias("n_paired"),
        ratio.drop_nulls().alias("ratios"),
    )
    variation = pl.when(pl.col("mean") != 0).then(pl.col("standard_deviation") / pl.col("mean").abs())
    return cells.select(
        *cell,
        "metric",
        "n_instances",
        "n_trials",
        "median",
        "mean",
        "standard_deviation",
        variation.alias("coefficient_of_variation"),
        *_interval_columns(median_intervals(samples_of(cells["values"]), confidence), "low", "high"),
        *_interval_columns(_means(cells, "values", confidence, means_of), "mean_low", "mean_high"),
        pl.col("median_ratio").alias("ratio"),
        *_interval_columns(
            median_intervals(samples_of(cells["ratios"]), confidence), "ratio_low", "ratio_high"
        ),
        "mean_ratio",
        *_interval_columns(
            _means(cells, "ratios", confidence, means_of), "mean_ratio_low", "mean_ratio_high"
        ),
        "n_paired",
    )


def _means(
    cells: pl.DataFrame, samples: str, confidence: float, metrics: Collection[str] | None
) -> list[Interval | None]:
    nothing = np.empty(0)
    return mean_intervals(
        [
            sample if metrics is None or metric in metrics else nothing
            for metric, sample in zip(cells["metric"], samples_of(cells[samples]), strict=True)
        ],
        confidence,
    )


def _interval_columns(intervals: list[Interval | None], low: str, high: str) -> tuple[pl.Series, pl.Series]:
    return (
        pl.Series(low, [interval and interval.low for interval in intervals], pl.Float64),
        pl.Series(high, [interval and interval.high for interval in intervals], pl.Float64),
    )
