"""Which metric answers what is asked at a point, and which way round it is better."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from tunnelbench.analysis.frames import POINT
from tunnelbench.study.points import Point, Question

RANKED_BY: Mapping[Question, str] = {
    "throughput": "throughput",
    "capacity": "capacity",
    "delay": "latency_p50",
    "round trip": "round_trip_p50",
    "transactions": "transactions_per_second",
}
"""The metric that answers what is asked at a point."""

LESS_IS_BETTER = frozenset({"latency_p50", "round_trip_p50"})
"""Of those metrics, those of which less is better; of the others more is."""


def answering(rows: pl.DataFrame) -> pl.DataFrame:
    """Of rows with the columns of a point and `metric`, those whose metric answers what is asked there."""
    points = rows.select(POINT).unique()
    answers = points.with_columns(
        pl.Series(
            "metric",
            [RANKED_BY[Point.model_validate(point).question] for point in points.iter_rows(named=True)],
            pl.String,
        )
    )
    return rows.join(answers, on=(*POINT, "metric"), how="semi", nulls_equal=True, maintain_order="left")
