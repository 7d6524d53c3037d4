"""ICMP echo requests: the server's own system answers."""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.traffic import EchoProbe, IcmpEcho, Probed, ProbeSchedule
from tunnelbench.load.base import LoadError, Measurement, Workload
from tunnelbench.load.engine import doubts, metrics
from tunnelbench.load.engine.scene import Scene, ended

MEASURES = frozenset(
    {
        *("loss", "duplicates", "reordering", "packets_per_second"),
        *(f"round_trip_{quantile}" for quantile in metrics.QUANTILES),
    }
)
LEAST_DATA = 12
"""Bytes of the header that tells its number and when it left."""

_TIMEOUT_NS = 1_000_000_000
"""A reply that takes longer counts as lost."""


async def measure(scene: Scene) -> Measurement:
    """One trial; raises LoadError where no reply came."""
    workload = scene.workload
    probe = EchoProbe(
        destination=IcmpEcho(workload.server.address),
        plan=ProbeSchedule(scene.client_schedule),
        interval=_interval(workload),
        payload_bytes=workload.payload,
        timeout=_TIMEOUT_NS,
        socket=scene.socket_options,
    )
    async with AsyncExitStack() as running:
        prober = await scene.client.start_traffic(probe, Probed)
        running.push_async_callback(ended, prober)
        probed = await prober.outcome(scene.timeout)
    if probed.round_trip is None:
        raise LoadError(f"none of {probed.sent} echo requests was answered")
    round_trip = probed.round_trip_from_intended or probed.round_trip
    steps = probed.series
    return Measurement(
        # Where all were answered, each crossed twice.
        delivered_bytes=2 * probed.total_replies * workload.payload if _complete(probed) else None,
        delivered_packets=2 * probed.total_replies if _complete(probed) else None,
        metrics={
            "loss": 1 - probed.replies / probed.sent,
            "duplicates": probed.duplicates / probed.replies,
            "reordering": probed.reordered / probed.replies,
            "packets_per_second": probed.replies / workload.measure_s,
            **metrics.quantiles("round_trip", round_trip),
        },
        histograms=metrics.encoded({"round_trip": round_trip}),
        series={"packets_per_second": [count * 1e9 / steps.step for count in steps.completed]},
        warnings=doubts.of_icmp(probed),
    )


def _complete(probed: Probed) -> bool:
    return probed.total_replies == probed.total_sent


def _interval(workload: Workload) -> int:
    """ns; 0 has each request follow the reply to the last."""
    bits_per_second = workload.bits_per_second
    return 0 if bits_per_second is None else round(workload.payload * 8e9 / bits_per_second)
