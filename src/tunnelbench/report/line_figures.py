"""Lines over what can be counted: one figure for each metric that there are numbers of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import polars

from tunnelbench.report import comparing
from tunnelbench.report.content import Estimate, Result
from tunnelbench.report.drawing import Drawing, draw
from tunnelbench.report.wording import number

WIRE = "wire_overhead"

METRICS: dict[str, str] = {
    "throughput": "throughput in Mbit/s",
    "capacity": "capacity in Mbit/s",
    "latency_p50": "median one-way delay in ms",
    "jitter": "jitter in ms",
    "round_trip_p50": "median round trip in ms",
    "transactions_per_second": "transactions per second",
    "loss": "loss as a share of what was sent",
}
"""Metrics that are drawn as lines over anything, with their words; the papers' come first."""


@dataclass(frozen=True)
class Over:
    """What lines are drawn over."""

    name: str
    """In titles: the payload."""
    unit: str
    """Of its places: bytes."""
    axis: str
    """Title of the axis."""
    place: Callable[[Result], int]
    line: Callable[[Result], str]
    """To which line a result belongs."""


def line_figures(
    results: Iterable[Result], over: Over, words: str, slug: str, metrics: Mapping[str, str]
) -> Iterator[Drawing]:
    """A figure for each metric that at least two places have.

    `words` say what was sent, and `slug` says it in file names; `metrics` have their words.
    """
    results = tuple(results)
    for metric, what in metrics.items():
        rows = [
            _row(result, estimate, over)
            for result in results
            if (estimate := result.metrics.get(metric)) is not None
        ]
        if len({row["place"] for row in rows}) < 2 or not any(row["median"] for row in rows):
            continue
        frame = polars.DataFrame(rows, infer_schema_length=None)
        title = f"{what[0].upper()}{what[1:]} over the {over.name}"
        yield draw(
            comparing.lines(frame, what, over.axis, from_zero=metric != WIRE),
            f"{metric.replace('_', '-')}-over-{over.name.replace(' ', '-')}-{slug}",
            title,
            f"{title}, {words}. {_spoken(frame, over.unit)}",
        )


def _row(result: Result, estimate: Estimate, over: Over) -> dict[str, object]:
    return {
        "tunnel": over.line(result),
        "vpn": result.treatment.vpn,
        "runtime": result.runtime,
        "place": over.place(result),
        "median": estimate.median,
        "low": estimate.low,
        "high": estimate.high,
    }


def _spoken(frame: polars.DataFrame, unit: str) -> str:
    """Of each tunnel the value at the smallest and at the largest place."""
    ends = frame.sort("place").group_by("tunnel", "runtime", maintain_order=True)
    found = ends.agg(
        first=polars.col("median").first(),
        last=polars.col("median").last(),
        smallest=polars.col("place").first(),
        largest=polars.col("place").last(),
    )
    return ". ".join(
        f"{row['tunnel']} ({row['runtime']}) {number(row['first'])} at {row['smallest']} and "
        f"{number(row['last'])} at {row['largest']} {unit}"
        for row in found.iter_rows(named=True)
    )
