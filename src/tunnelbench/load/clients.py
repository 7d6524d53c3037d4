"""The traffic of several clients at once, as one measurement."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from tunnelbench.load.background import OF_BACKGROUND
from tunnelbench.load.base import LoadWarning, Measurement

_SUMS = frozenset(
    {"throughput", "offered", "packets_per_second", "retransmits", "transactions_per_second", *OF_BACKGROUND}
)

OF_CLIENTS = frozenset({"throughput_least", "throughput_most", "fairness"})
"""What the traffic of several clients has besides."""


def all_clients(measurements: Sequence[Measurement]) -> Measurement:
    """What the traffic of several clients found out; that of one alone is as it was.

    Rates are summed up; of all else, such as loss and delay, it is the mean over the clients. Fairness is
    Jain's index of the clients' throughputs: 1 where all have the same, 1/n where one has all (R. Jain,
    D. Chiu, W. Hawe, A Quantitative Measure of Fairness, DEC Research Report TR-301, 1984). Distributions and
    series are those of the first client.
    """
    first = measurements[0]
    if len(measurements) == 1:
        return first
    shared = [name for name in first.metrics if all(name in one.metrics for one in measurements)]
    return Measurement(
        delivered_bytes=_sum([one.delivered_bytes for one in measurements]),
        delivered_packets=_sum([one.delivered_packets for one in measurements]),
        metrics={
            **{name: _joined(name, [one.metrics[name] for one in measurements]) for name in shared},
            **_spread([one.metrics["throughput"] for one in measurements if "throughput" in one.metrics]),
        },
        histograms=first.histograms,
        series=first.series,
        warnings=_distinct(measurements),
        packet_logs=first.packet_logs,
    )


def _joined(name: str, values: Sequence[float]) -> float:
    return sum(values) if name in _SUMS else fmean(values)


def _spread(throughputs: Sequence[float]) -> dict[str, float]:
    if not throughputs or not any(throughputs):
        return {}
    squares = sum(value * value for value in throughputs)
    return {
        "throughput_least": min(throughputs),
        "throughput_most": max(throughputs),
        "fairness": sum(throughputs) ** 2 / (len(throughputs) * squares),
    }


def _distinct(measurements: Sequence[Measurement]) -> list[LoadWarning]:
    """One warning of each kind: sixteen clients would say the same sixteen times."""
    return list({warning.kind: warning for one in measurements for warning in one.warnings}.values())


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
