"""Which figures a single point has: those for which there are numbers to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import polars

from tunnelbench.report import figures
from tunnelbench.report.content import MACHINE, Result, Section
from tunnelbench.report.drawing import Drawing, draw
from tunnelbench.report.wording import number, point_slug, runtime_title
from tunnelbench.study.points import Question
from tunnelbench.study.wording import point_title

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


def point_figures(section: Section) -> list[Drawing]:
    """All figures of one point."""
    return list(_drawings(section))


def _drawings(section: Section) -> Iterator[Drawing]:
    for kind in KINDS[section.point.question]:
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


def _bar_rows(result: Result) -> Rows:
    estimate = result.ranking
    if estimate is None:
        return []
    bounds = {"median": estimate.median, "low": estimate.low, "high": estimate.high}
    return [{"encrypted": result.encrypted, **bounds}]


def _ratio_rows(result: Result) -> Rows:
    estimate = result.ranking
    if estimate is None or estimate.ratio is None or result.treatment.is_baseline:
        return []
    bounds = {"ratio": estimate.ratio, "ratio_low": estimate.ratio_low, "ratio_high": estimate.ratio_high}
    return [{"encrypted": result.encrypted, **bounds}]


def _processor_rows(result: Result) -> Rows:
    machine = {} if result.machine is None else {MACHINE: result.machine}
    return [{"node": node, "value": value} for node, value in {**result.by_node, **machine}.items()]


def _bars(name: str, title: str, unit: str) -> Kind:
    return Kind(
        name,
        f"{title}, median and interval",
        partial(figures.bars, unit=unit),
        _bar_rows,
        lambda result: result.ranking and result.ranking.median,
    )


def _ratio(what: str) -> Kind:
    return Kind(
        "ratio",
        f"{what[0].upper()}{what[1:]} as a ratio to plain IP, median and interval",
        partial(figures.ratio, what=what),
        _ratio_rows,
        lambda result: result.ranking and result.ranking.ratio,
    )


def _times(metric: str, what: str) -> Kind:
    def rows(result: Result) -> Rows:
        found = {quantile: result.metrics.get(f"{metric}_{quantile}") for quantile in figures.QUANTILES}
        return [
            {"quantile": quantile, "value": estimate.median}
            for quantile, estimate in found.items()
            if estimate is not None and estimate.median > 0
        ]

    def median(result: Result) -> float | None:
        estimate = result.metrics.get(f"{metric}_p50")
        return estimate and estimate.median

    title = f"Quantiles of the {what} in ms"
    return Kind(metric.replace("_", "-"), title, partial(figures.times, what=what), rows, median)


_PROCESSOR = Kind(
    "processor",
    "Processor seconds per second, node by node",
    figures.processor,
    _processor_rows,
    lambda result: sum(result.by_node.values()),
)
_LATENCY = _times("latency", "one-way delay")
_ROUND_TRIP = _times("round_trip", "round trip")

KINDS: Mapping[Question, tuple[Kind, ...]] = {
    "throughput": (
        _bars("throughput", "Throughput in Mbit/s", "Mbit/s"),
        _ratio("throughput"),
        _PROCESSOR,
        _LATENCY,
    ),
    "capacity": (
        _bars("capacity", "Capacity in Mbit/s", "Mbit/s"),
        _ratio("capacity"),
        _PROCESSOR,
        _LATENCY,
    ),
    # All bars of throughput would be alike.
    "delay": (_LATENCY, _PROCESSOR),
    "round trip": (_ROUND_TRIP, _PROCESSOR),
    "transactions": (
        _bars("transactions", "Transactions per second", "transactions per second"),
        _ratio("transactions per second"),
        _ROUND_TRIP,
        _PROCESSOR,
    ),
}
