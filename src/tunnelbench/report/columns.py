"""The columns of the main table: what each shows of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tunnelbench.report.content import MACHINE, NODES, Estimate, Result
from tunnelbench.report.wording import NOTHING, compact_interval, number, percentage


@dataclass(frozen=True)
class Column:
    """One column: the group it stands under, its own heading, and its text for a result."""

    group: str
    heading: str
    text: Callable[[Result], str]


@dataclass(frozen=True)
class Group:
    """A heading over several columns."""

    heading: str
    span: int


def columns_for(results: Sequence[Result]) -> list[Column]:
    """The columns in which at least one of these results has something to show."""
    return [column for column in _all_columns() if any(column.text(result) != NOTHING for result in results)]


def groups_of(columns: Sequence[Column]) -> list[Group]:
    """The headings over the columns, in their order."""
    spans: dict[str, int] = {}
    for column in columns:
        spans[column.group] = spans.get(column.group, 0) + 1
    return [Group(heading, span) for heading, span in spans.items()]


def _all_columns() -> list[Column]:
    throughput = "Throughput, Mbit/s"
    ratio = "Ratio to plain IP"
    processor = "Processor s/s"
    delay = "One-way delay, ms"
    round_trip = "Round trip, ms"
    return [
        Column(throughput, "median", _metric("throughput", lambda it: number(it.median))),
        Column(
            throughput, "95 % interval", _metric("throughput", lambda it: compact_interval(it.low, it.high))
        ),
        Column(ratio, "median", _metric("throughput", lambda it: number(it.ratio))),
        Column(ratio, "95 % interval", _ratio_interval),
        *(Column(processor, node, _processor(node)) for node in (*NODES, MACHINE)),
        Column("Wire", "bytes per byte", _metric("wire_overhead", lambda it: number(it.median))),
        Column("Loss", "of sent", _metric("loss", lambda it: percentage(it.median))),
        Column(delay, "p50", _metric("latency_p50", lambda it: number(it.median))),
        Column(delay, "p99", _metric("latency_p99", lambda it: number(it.median))),
        Column(round_trip, "p50", _metric("round_trip_p50", lambda it: number(it.median))),
        Column(round_trip, "p99", _metric("round_trip_p99", lambda it: number(it.median))),
        Column("Set-up", "ms", lambda result: number(result.proof.setup_ms)),
        Column("n", "(trials)", _metric("throughput", lambda it: f"{it.n_instances} ({it.n_trials})")),
    ]


def _metric(name: str, text: Callable[[Estimate], str]) -> Callable[[Result], str]:
    def of(result: Result) -> str:
        estimate = result.metrics.get(name)
        return NOTHING if estimate is None else text(estimate)

    return of


def _ratio_interval(result: Result) -> str:
    estimate = result.throughput
    if estimate is None or result.treatment.is_baseline:
        return NOTHING
    return compact_interval(estimate.ratio_low, estimate.ratio_high)


def _processor(node: str) -> Callable[[Result], str]:
    def of(result: Result) -> str:
        estimate = result.processor.get(node)
        return NOTHING if estimate is None else f"{estimate.median:.2f}"

    return of
