"""The columns of the main table: what each shows of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tunnelbench.report.content import MACHINE, NODES, Estimate, Result, Section
from tunnelbench.report.wording import (
    NOTHING,
    compact_interval,
    interval_name,
    milliseconds,
    number,
    percentage,
)


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


def columns_for(section: Section) -> list[Column]:
    """The columns of a point in which at least one of its results has something to show."""
    instances = min((result.proof.proven for result in section.results), default=0)
    name = interval_name(instances)
    columns = _by_delay(name) if section.at_fixed_rate else _by_throughput(name)
    return [column for column in columns if any(column.text(result) != NOTHING for result in section.results)]


def groups_of(columns: Sequence[Column]) -> list[Group]:
    """The headings over the columns, in their order."""
    spans: dict[str, int] = {}
    for column in columns:
        spans[column.group] = spans.get(column.group, 0) + 1
    return [Group(heading, span) for heading, span in spans.items()]


def _by_throughput(interval: str) -> list[Column]:
    throughput, ratio, delay = "Throughput, Mbit/s", "Ratio to plain IP", "One-way delay, ms"
    return [
        Column(throughput, "median", _median("throughput")),
        Column(throughput, interval, _interval("throughput")),
        Column(ratio, "median", _ratio("throughput")),
        Column(ratio, interval, _ratio_interval("throughput")),
        *_processor(),
        _wire(),
        _loss(),
        Column(delay, "p50", _median("latency_p50")),
        Column(delay, "p99", _median("latency_p99")),
        *_round_trip_and_setup(),
    ]


def _by_delay(interval: str) -> list[Column]:
    delay, ratio = "One-way delay, ms", "Ratio of p50 to plain IP"
    return [
        Column(delay, "p50", _median("latency_p50", milliseconds)),
        Column(delay, interval, _interval("latency_p50", milliseconds)),
        Column(delay, "p99", _median("latency_p99", milliseconds)),
        Column(ratio, "median", _ratio("latency_p50")),
        Column(ratio, interval, _ratio_interval("latency_p50")),
        _loss(),
        *_processor(),
        _wire(),
        Column("Received", "Mbit/s", _median("throughput")),
        *_round_trip_and_setup(),
    ]


def _processor() -> list[Column]:
    return [Column("Processor s/s", node, _processor_of(node)) for node in (*NODES, MACHINE)]


def _wire() -> Column:
    return Column("Wire", "bytes per byte", _median("wire_overhead"))


def _loss() -> Column:
    return Column("Loss", "of sent", _metric("loss", lambda it: percentage(it.median)))


def _round_trip_and_setup() -> list[Column]:
    round_trip = "Round trip, ms"
    return [
        Column(round_trip, "p50", _median("round_trip_p50")),
        Column(round_trip, "p99", _median("round_trip_p99")),
        Column("Set-up", "ms", lambda result: number(result.proof.setup_ms)),
        Column("n", "(trials)", _metric("throughput", lambda it: f"{it.n_instances} ({it.n_trials})")),
    ]


def _metric(name: str, text: Callable[[Estimate], str]) -> Callable[[Result], str]:
    def of(result: Result) -> str:
        estimate = result.metrics.get(name)
        return NOTHING if estimate is None else text(estimate)

    return of


def _median(name: str, text: Callable[[float], str] = number) -> Callable[[Result], str]:
    return _metric(name, lambda it: text(it.median))


def _interval(name: str, text: Callable[[float], str] = number) -> Callable[[Result], str]:
    return _metric(name, lambda it: compact_interval(it.low, it.high, text))


def _ratio(name: str) -> Callable[[Result], str]:
    return _metric(name, lambda it: number(it.ratio))


def _ratio_interval(name: str) -> Callable[[Result], str]:
    interval = _metric(name, lambda it: compact_interval(it.ratio_low, it.ratio_high))
    return lambda result: NOTHING if result.treatment.is_baseline else interval(result)


def _processor_of(node: str) -> Callable[[Result], str]:
    def of(result: Result) -> str:
        estimate = result.processor.get(node)
        return NOTHING if estimate is None else f"{estimate.median:.2f}"

    return of
