"""Traffic in both directions at once, as one measurement."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tunnelbench.load.base import Measurement

_BY_DIRECTION = ("throughput", "loss", "latency_p50", "latency_p99")
BOTH_WAYS = frozenset(f"{name}_{way}" for name in _BY_DIRECTION for way in ("forward", "reverse"))
"""What traffic in both directions has for each direction too, as far as it is measured at all."""

_SUMS = frozenset({"throughput", "offered", "packets_per_second", "retransmits"})
_LESS_IS_WORSE = frozenset({"r_factor", "mos"})


def together(forward: Measurement, reverse: Measurement) -> Measurement:
    """What traffic in both directions at once found out.

    Rates are summed up; of all else, such as loss and delay, the worse of the two directions counts.
    Distributions and series are kept by direction.
    """
    ends = {"forward": forward, "reverse": reverse}
    return Measurement(
        delivered_bytes=_sum(end.delivered_bytes for end in ends.values()),
        delivered_packets=_sum(end.delivered_packets for end in ends.values()),
        metrics={
            **{name: _joined(name, [end.metrics for end in ends.values()]) for name in forward.metrics},
            **{
                f"{name}_{direction}": end.metrics[name]
                for direction, end in ends.items()
                for name in _BY_DIRECTION
                if name in end.metrics
            },
        },
        histograms={
            f"{name}_{way}": data for way, end in ends.items() for name, data in end.histograms.items()
        },
        series={f"{name}_{way}": data for way, end in ends.items() for name, data in end.series.items()},
        warnings=[*forward.warnings, *reverse.warnings],
    )


def _joined(name: str, metrics: Iterable[Mapping[str, float]]) -> float:
    values = [one[name] for one in metrics if name in one]
    if name in _SUMS:
        return sum(values)
    return min(values) if name in _LESS_IS_WORSE else max(values)


def _sum(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
