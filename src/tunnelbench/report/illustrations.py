"""Which figures a report has: for every point those for which there are numbers to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import polars

from tunnelbench.report import figures
from tunnelbench.report.content import NODES, Result, Section
from tunnelbench.report.drawing import Drawing, draw
from tunnelbench.report.wording import number, point_slug, point_title, runtime_title

Rows = list[dict[str, object]]


@dataclass(frozen=True)
class Kind:
    """A kind of figure: what it is called, how it is drawn, and what it shows of a result."""

    name: str
    title: str
    chart: Callable[[polars.DataFrame], figures.Chart]
    rows: Callable[[Result], Rows]
    """The rows of the chart's frame, besides tunnel and runtime; none where there is nothing to draw."""
    spoken: Callable[[Result], float | None]
    """The number that stands for a result where the figure can't be seen."""


def illustrate(section: Section) -> list[Drawing]:
    """Draw all figures of one point."""
    return list(_drawings(section))


def _drawings(section: Section) -> Iterator[Drawing]:
    for kind in FIXED_RATE_KINDS if section.at_fixed_rate else KINDS:
        drawn = [(result, kind.rows(result)) for result in section.results]
        rows = [
            {"tunnel": result.tunnel, "runtime": result.runtime, **row}
            for result, found in drawn
            for row in found
        ]
        if not rows:
            continue
        spoken = _spoken(kind, (result for result, found in drawn if found))
        alternative = f"{kind.title}, {point_title(section.point)}. {spoken}"
        frame = polars.DataFrame(rows, infer_schema_length=None)
        yield draw(kind.chart(frame), f"{kind.name}-{point_slug(section.point)}", kind.title, alternative)


def _spoken(kind: Kind, results: Iterable[Result]) -> str:
    by_runtime: dict[str, list[str]] = {}
    for result in results:
        by_runtime.setdefault(result.runtime, []).append(f"{result.tunnel} {number(kind.spoken(result))}")
    return ". ".join(
        f"With {runtime_title(runtime)}: {', '.join(words)}" for runtime, words in by_runtime.items()
    )


def _throughput_rows(result: Result) -> Rows:
    estimate = result.throughput
    if estimate is None:
        return []
    bounds = {"median": estimate.median, "low": estimate.low, "high": estimate.high}
    return [{"encrypted": result.encrypted, **bounds}]


def _ratio_rows(result: Result) -> Rows:
    estimate = result.throughput
    if estimate is None or estimate.ratio is None or result.treatment.is_baseline:
        return []
    bounds = {"ratio": estimate.ratio, "ratio_low": estimate.ratio_low, "ratio_high": estimate.ratio_high}
    return [{"encrypted": result.encrypted, **bounds}]


def _processor_rows(result: Result) -> Rows:
    return [{"node": node, "value": estimate.median} for node, estimate in result.processor.items()]


def _latency_rows(result: Result) -> Rows:
    return [
        {"metric": metric, "value": result.metrics[metric].median}
        for metric in figures.QUANTILES
        if metric in result.metrics and result.metrics[metric].median > 0
    ]


_THROUGHPUT = Kind(
    "throughput",
    "Throughput in Mbit/s, median and interval",
    figures.throughput,
    _throughput_rows,
    lambda result: result.throughput and result.throughput.median,
)
_RATIO = Kind(
    "ratio",
    "Throughput as a ratio to plain IP, median and interval",
    figures.ratio,
    _ratio_rows,
    lambda result: result.throughput and result.throughput.ratio,
)
_PROCESSOR = Kind(
    "processor",
    "Processor seconds per second, node by node",
    figures.processor,
    _processor_rows,
    lambda result: sum(result.processor[node].median for node in NODES if node in result.processor),
)
_LATENCY = Kind(
    "latency",
    "Quantiles of the one-way delay in ms",
    figures.latency,
    _latency_rows,
    lambda result: result.delay and result.delay.median,
)

KINDS = (_THROUGHPUT, _RATIO, _PROCESSOR, _LATENCY)
FIXED_RATE_KINDS = (_LATENCY, _PROCESSOR)
"""All bars of throughput would be alike."""
