"""The columns of the main table: what each shows of a result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from tunnelbench.report.content import MACHINE, NODES, Estimate, Result, Section
from tunnelbench.report.wording import (
    NOTHING,
    compact_interval,
    interval_name,
    milliseconds,
    number,
    percentage,
)
from tunnelbench.study.points import Question


@dataclass(frozen=True)
class Column:
    """One column: the group it stands under, its own heading, and its text for a result."""

    group: str
    heading: str
    text: Callable[[Result], str]
    is_detail: bool = False
    """Whether a page shows it only on demand, so that the main table fits a screen."""


@dataclass(frozen=True)
class Group:
    """A heading over several columns."""

    heading: str
    span: int


def columns_for(section: Section) -> list[Column]:
    """The columns of a point in which at least one of its results has something to show."""
    counts = [result.ranking.n_instances for result in section.results if result.ranking is not None]
    # One instance has no interval; of the rest, what all can promise.
    instances = min((count for count in counts if count > 1), default=0)
    columns = _COLUMNS[section.point.question](interval_name(instances))
    return [column for column in columns if any(column.text(result) != NOTHING for result in section.results)]


def groups_of(columns: Sequence[Column]) -> list[Group]:
    """The headings over the columns, in their order."""
    spans: dict[str, int] = {}
    for column in columns:
        spans[column.group] = spans.get(column.group, 0) + 1
    return [Group(heading, span) for heading, span in spans.items()]


def _by_throughput(interval: str) -> list[Column]:
    return [
        *_ranked("throughput", "Throughput, Mbit/s", "median", interval),
        *_related("throughput", "Ratio to plain IP", interval),
        _gateways(),
        _wire(),
        _loss(),
        _counted(),
        *_details(
            *_both_ways(),
            *_processor(),
            _wire_by_formats(),
            Column("Sent again", "segments/s", _median("retransmits")),
            *_times("latency", "One-way delay, ms"),
            *_times("tcp_round_trip", "Round trip by TCP, ms"),
            _setup(),
        ),
    ]


def _by_capacity(interval: str) -> list[Column]:
    return [
        *_ranked("capacity", "Capacity, Mbit/s", "median", interval),
        *_related("capacity", "Ratio to plain IP", interval),
        _loss(),
        *_times("latency", "One-way delay, ms"),
        _gateways(),
        _wire(),
        _counted(),
        *_details(
            Column("Too much", "Mbit/s", _median("capacity_upper")),
            Column("Capacity", "packets/s", _median("capacity_pps")),
            *_processor(),
            _wire_by_formats(),
            Column("Search", "seconds", _median("capacity_seconds")),
            _setup(),
        ),
    ]


def _by_delay(interval: str) -> list[Column]:
    return [
        *_ranked("latency_p50", "One-way delay, ms", "p50", interval, milliseconds),
        Column("One-way delay, ms", "p99", _median("latency_p99", milliseconds)),
        *_related("latency_p50", "Ratio of p50 to plain IP", interval),
        Column("Jitter, ms", "last", _jitter),
        Column("Voice", "MOS", _median("mos")),
        *_added("p50"),
        _background(),
        _loss(),
        _gateways(),
        _wire(),
        _counted(),
        *_details(
            Column("PDV, ms", "p99", _median("pdv_p99", milliseconds)),
            Column("IPDV, ms", "p99", _median("ipdv_p99", milliseconds)),
            *_processor(),
            _wire_by_formats(),
            Column("Received", "Mbit/s", _median("throughput")),
            _setup(),
        ),
    ]


def _by_round_trip(interval: str) -> list[Column]:
    return [
        *_ranked("round_trip_p50", "Round trip, ms", "p50", interval, milliseconds),
        Column("Round trip, ms", "p99", _median("round_trip_p99", milliseconds)),
        *_related("round_trip_p50", "Ratio of p50 to plain IP", interval),
        *_added("p50"),
        _background(),
        _loss(),
        _gateways(),
        _wire(),
        _counted(),
        *_details(*_processor(), _wire_by_formats(), _setup()),
    ]


def _by_transactions(interval: str) -> list[Column]:
    return [
        *_ranked("transactions_per_second", "Transactions per second", "median", interval),
        *_related("transactions_per_second", "Ratio to plain IP", interval),
        *_times("round_trip", "Round trip, ms"),
        Column("To connect, ms", "p50", _median("connect_p50", milliseconds)),
        _background(),
        _gateways(),
        _wire(),
        _counted(),
        *_details(*_processor(), _wire_by_formats(), _setup()),
    ]


_COLUMNS: Mapping[Question, Callable[[str], list[Column]]] = {
    "throughput": _by_throughput,
    "capacity": _by_capacity,
    "delay": _by_delay,
    "round trip": _by_round_trip,
    "transactions": _by_transactions,
}


def _ranked(
    metric: str, title: str, heading: str, interval: str, text: Callable[[float], str] = number
) -> list[Column]:
    return [
        Column(title, heading, _median(metric, text)),
        Column(title, interval, _interval(metric, text)),
        Column(title, "tier", _tier),
    ]


def _related(metric: str, title: str, interval: str) -> list[Column]:
    return [Column(title, "median", _ratio(metric)), Column(title, interval, _ratio_interval(metric))]


def _times(metric: str, title: str) -> list[Column]:
    return [
        Column(title, quantile, _median(f"{metric}_{quantile}", milliseconds)) for quantile in ("p50", "p99")
    ]


def _both_ways() -> list[Column]:
    return [
        Column("By direction, Mbit/s", way, _median(f"throughput_{way}")) for way in ("forward", "reverse")
    ]


def _processor() -> list[Column]:
    nodes = [Column("Processor s/s", node, _processor_of(node)) for node in NODES]
    return [*nodes, Column("Processor s/s", MACHINE, _of_machine)]


def _gateways() -> Column:
    return Column("Gateways", "processor s/s", _of_gateways)


def _added(quantile: str) -> list[Column]:
    title = f"Added to {quantile}, ms"
    return [Column(title, "mean", _mean_added), Column(title, "95 % interval", _interval_added)]


def _background() -> Column:
    return Column("Background", "Mbit/s", _median("background_throughput"))


def _wire() -> Column:
    return Column("Wire", "bytes/byte", _median("wire_overhead"))


def _wire_by_formats() -> Column:
    return Column("Wire by formats", "bytes/byte", _median("wire_overhead_predicted"))


def _loss() -> Column:
    return Column("Loss", "of sent", _metric("loss", lambda it: percentage(it.median)))


def _setup() -> Column:
    return Column("Set-up", "ms", lambda result: number(result.proof.setup_ms))


def _counted() -> Column:
    return Column("n", "(trials)", _counts)


def _details(*columns: Column) -> list[Column]:
    return [replace(column, is_detail=True) for column in columns]


def _counts(result: Result) -> str:
    """Of the metric that ranks the result, or of another where the load doesn't measure that."""
    estimate = result.ranking or next(iter(result.metrics.values()))
    return f"{estimate.n_instances} ({estimate.n_trials})"


def _tier(result: Result) -> str:
    return NOTHING if result.tier is None else str(result.tier)


def _jitter(result: Result) -> str:
    """For loads that don't measure the delay itself."""
    return _median("jitter_last", milliseconds)(result) if result.delay is None else NOTHING


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


def _mean_added(result: Result) -> str:
    return NOTHING if result.added is None else milliseconds(result.added.mean)


def _interval_added(result: Result) -> str:
    added = result.added
    return NOTHING if added is None else compact_interval(added.low, added.high, milliseconds)


def _of_gateways(result: Result) -> str:
    return _seconds(result.gateways)


def _of_machine(result: Result) -> str:
    return _seconds(result.machine)


def _processor_of(node: str) -> Callable[[Result], str]:
    return lambda result: _seconds(result.by_node.get(node))


def _seconds(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"
