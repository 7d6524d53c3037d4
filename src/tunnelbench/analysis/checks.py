"""Looks through a campaign's results for reasons to doubt them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from tunnelbench.analysis.frames import CELL, LAB, POINT, TREATMENT
from tunnelbench.analysis.intervals import CONFIDENCE, attainable_confidence
from tunnelbench.analysis.ranked import answering
from tunnelbench.analysis.warnings import (
    BaselineDrift,
    MeasuredCell,
    MeasurementWarning,
    MissingBaseline,
    SlowSender,
    TooFewInstances,
    UnstableCell,
)
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import BASELINE_VPN, Treatment

METRIC = "throughput"
"""The metric whose spread is checked; the others follow it."""

LARGEST_VARIATION = 0.10
"""Published evaluations of VPNs report coefficients of variation of up to 9 %."""

LARGEST_DRIFT = 0.05
"""Change of the baseline over a campaign, relative to its median, that goes without a warning."""

SIGNIFICANCE = 0.05

SMALLEST_SENDING_SHARE = 0.98
"""Of the rate asked for."""

MOST_TIMES = 500
"""Moments of which a trend is made."""


def warnings_about(
    values: pl.DataFrame, baselines: pl.DataFrame, summary: pl.DataFrame
) -> tuple[MeasurementWarning, ...]:
    """Every doubt about results: `frames.instance_values`, those of baselines, and what `summarise` made.

    Of the values, those whose round lacks a baseline are enough: one for each treatment and round.
    """
    return (
        *too_few_instances(summary),
        *missing_baselines(values),
        *baseline_drifts(baselines),
        *unstable_cells(summary),
        *slow_senders(summary),
    )


def unstable_cells(summary: pl.DataFrame, bound: float = LARGEST_VARIATION) -> Iterator[UnstableCell]:
    """Cells whose throughput has a coefficient of variation above the bound."""
    unstable = summary.filter(pl.col("metric") == METRIC, pl.col("coefficient_of_variation") > bound)
    for row in unstable.iter_rows(named=True):
        yield UnstableCell(_cell(row), METRIC, row["coefficient_of_variation"], bound)


def too_few_instances(summary: pl.DataFrame, confidence: float = CONFIDENCE) -> Iterator[TooFewInstances]:
    """Cells with fewer instances than an interval of the median needs, counted by how many they have."""
    needed = next(count for count in range(1, 1000) if attainable_confidence(count) >= confidence)
    counts = (
        summary.filter(pl.col("metric") == METRIC, pl.col("n_instances") < needed)
        .group_by("n_instances")
        .len("n_cells")
        .sort("n_instances")
    )
    for row in counts.iter_rows(named=True):
        yield TooFewInstances(row["n_cells"], row["n_instances"], needed, confidence)


def missing_baselines(values: pl.DataFrame) -> Iterator[MissingBaseline]:
    """Rounds in which a result has no baseline of its runtime, operating systems, MTU and point.

    Takes `frames.instance_values`.
    """
    place = ("campaign_round", "runtime", *LAB, *POINT)
    is_baseline = pl.col("vpn") == BASELINE_VPN
    alone = values.filter(~is_baseline).join(
        values.filter(is_baseline), on=place, how="anti", nulls_equal=True
    )
    rounds = (
        alone.group_by("runtime", "gateway_os", "host_os", "mtu")
        .agg(pl.col("campaign_round").unique().sort())
        .sort("runtime", "gateway_os", "host_os", "mtu")
    )
    for row in rounds.iter_rows(named=True):
        yield MissingBaseline(
            row["runtime"], row["gateway_os"], row["host_os"], row["mtu"], tuple(row["campaign_round"])
        )


def baseline_drifts(values: pl.DataFrame, bound: float = LARGEST_DRIFT) -> Iterator[BaselineDrift]:
    """Baselines with a trend over the rounds, significant and larger than the bound.

    That is of the metric that answers what is asked at their point. Takes `frames.instance_values`.
    """
    baselines = answering(values.filter(pl.col("vpn") == BASELINE_VPN))
    cell = (*CELL, "metric")
    by_round = baselines.group_by(*cell, "campaign_round").agg(pl.col("value").mean()).sort("campaign_round")
    cells = by_round.group_by(*cell).agg("campaign_round", "value").sort(*cell)
    for row in cells.iter_rows(named=True):
        trend = trend_of(row["campaign_round"], row["value"])
        if trend is not None and abs(trend.change) > bound and trend.p_value < SIGNIFICANCE:
            yield BaselineDrift(_cell(row), row["metric"], trend.change)


def slow_senders(summary: pl.DataFrame) -> Iterator[SlowSender]:
    """Cells with a given UDP rate that the sender missed."""
    for row in summary.filter(pl.col("metric") == "offered").iter_rows(named=True):
        cell = _cell(row)
        if cell.point.rate is None or cell.point.payload_bytes is None:
            continue
        asked = cell.point.rate.bits_per_second(cell.point.payload_bytes)
        if asked is not None and row["median"] < SMALLEST_SENDING_SHARE * asked / 1e6:
            yield SlowSender(cell, asked / 1e6, row["median"])


@dataclass(frozen=True)
class Trend:
    """A trend over time."""

    times: NDArray[np.float64]
    """Rising."""
    values: NDArray[np.float64]
    middle: float
    """Their median."""

    @cached_property
    def change(self) -> float:
        """From the first point in time to the last, relative to the median."""
        earlier, later = np.triu_indices(self.times.size, 1)
        slopes = (self.values[later] - self.values[earlier]) / (self.times[later] - self.times[earlier])
        return float(np.median(slopes)) * float(self.times[-1] - self.times[0]) / abs(self.middle)

    @cached_property
    def p_value(self) -> float:
        """Of as strong a trend in either direction where there is none."""
        # Here, since it takes a second to load, which reports of steady campaigns don't have.
        from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

        return float(cast(Any, stats).kendalltau(self.times, self.values).pvalue)


def trend_of(times: ArrayLike, values: ArrayLike) -> Trend | None:
    """The trend of values over rising times; None for fewer than two values or a median of zero.

    Size: slope of Theil and Sen (P. K. Sen, Journal of the American Statistical Association 63, 1968).
    Significance: Mann's test with Kendall's tau (H. B. Mann, Econometrica 13, 1945), exact without ties.
    Neither minds an outlier. Four values can't reach a significance of 5 %. Of more than MOST_TIMES, means of
    neighbours are taken, since slopes are as many as there are pairs.
    """
    moments, numbers = _thinned(times), _thinned(values)
    middle = float(np.median(numbers)) if numbers.size > 1 else 0.0
    return None if middle == 0 else Trend(moments, numbers, middle)


def _thinned(values: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.size <= MOST_TIMES:
        return array
    begins = np.arange(MOST_TIMES) * array.size // MOST_TIMES
    return np.add.reduceat(array, begins) / np.diff(begins, append=array.size)


def _cell(row: Mapping[str, Any]) -> MeasuredCell:
    return MeasuredCell(
        treatment=Treatment.model_validate({column: row[column] for column in TREATMENT}),
        point=Point.model_validate({column: row[column] for column in POINT}),
        runtime=row["runtime"],
    )
