"""Lines over the payload's size: one figure for each metric that a family of points has."""

from __future__ import annotations

from collections.abc import Iterator

import polars

from tunnelbench.report import comparing
from tunnelbench.report.content import Estimate, Result
from tunnelbench.report.drawing import Drawing, draw
from tunnelbench.report.families import Family
from tunnelbench.report.wording import family_title, number, point_slug

WIRE = "wire_overhead"
"""Rises by a step where datagrams begin to be cut up. TCP cuts what is written into segments of its own."""

METRICS = {
    "throughput": "throughput in Mbit/s",
    "capacity": "capacity in Mbit/s",
    "latency_p50": "median one-way delay in ms",
    "jitter": "jitter in ms",
    "round_trip_p50": "median round trip in ms",
    "transactions_per_second": "transactions per second",
    "loss": "loss as a share of what was sent",
    WIRE: "bytes on the wire for each byte of payload",
}
"""Metrics that are drawn over the payload, with their words; the papers' come first."""


def family_figures(family: Family) -> Iterator[Drawing]:
    """A figure for each metric, where at least two sizes have it."""
    for metric, words in METRICS.items():
        if metric == WIRE and family.point.transport == "tcp":
            continue
        rows = [
            _row(result, estimate)
            for section in family.sections
            for result in section.results
            if (estimate := result.metrics.get(metric)) is not None
        ]
        if len({row["payload"] for row in rows}) < 2 or not any(row["median"] for row in rows):
            continue
        frame = polars.DataFrame(rows, infer_schema_length=None)
        title = f"{words[0].upper()}{words[1:]} over the payload"
        name = f"{metric.replace('_', '-')}-over-payload-{point_slug(family.point)}"
        yield draw(
            comparing.lines(frame, words, from_zero=metric != WIRE),
            name,
            title,
            f"{title}, {family_title(family.point)}. {_spoken(frame)}",
        )


def _row(result: Result, estimate: Estimate) -> dict[str, object]:
    return {
        "tunnel": result.tunnel,
        "vpn": result.treatment.vpn,
        "runtime": result.runtime,
        "payload": result.point.payload_bytes,
        "median": estimate.median,
        "low": estimate.low,
        "high": estimate.high,
    }


def _spoken(frame: polars.DataFrame) -> str:
    """Of each tunnel the value at the smallest and at the largest payload."""
    ends = frame.sort("payload").group_by("tunnel", "runtime", maintain_order=True)
    found = ends.agg(
        first=polars.col("median").first(),
        last=polars.col("median").last(),
        smallest=polars.col("payload").first(),
        largest=polars.col("payload").last(),
    )
    return ". ".join(
        f"{row['tunnel']} ({row['runtime']}) {number(row['first'])} at {row['smallest']} bytes and "
        f"{number(row['last'])} at {row['largest']}"
        for row in found.iter_rows(named=True)
    )
