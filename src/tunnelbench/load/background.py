"""A bulk TCP stream beside measured traffic: what the traffic's delays are once the path is full.

Tests of queues (RFC 7928) and of responsiveness under working conditions load a path in this way. The stream
is the engine's, by CUBIC, and carries random bytes, which no tunnel compresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.together import together
from tunnelbench.load import engine
from tunnelbench.load.base import (
    SERIES_STEP_S,
    LoadDriver,
    LoadError,
    LoadWarning,
    Measurement,
    Traffic,
    TrafficNode,
    WindowPlan,
    Workload,
)
from tunnelbench.plan.estimate import BACKGROUND_SECONDS
from tunnelbench.study.vocabulary import Background, Direction, InternetProtocol

AFTER_S = 0.5
"""By how much longer than the measured traffic the stream lasts, seconds: what is sent last meets it too."""
BEFORE_S = BACKGROUND_SECONDS - AFTER_S
"""From the start of both to the warm-up of the measured traffic, seconds: TCP has filled the path by then."""

_THROUGHPUTS = ("throughput", "throughput_forward", "throughput_reverse")
OF_BACKGROUND = frozenset(f"background_{name}" for name in _THROUGHPUTS)
"""What traffic with a stream beside it has besides."""

_DIRECTIONS: Mapping[Background, Direction] = {"tcp": "forward", "tcp-reverse": "reverse", "tcp-both": "both"}
_WRITE_BYTES = 131_072
_CONGESTION_CONTROL = "cubic"
"""RFC 9438, what most systems have: it fills what queues there are, whatever this machine's default is."""
_NEXT_TO_NOTHING = 0.1
"""Mbit/s of payload."""


def bulk(background: Background, ip: InternetProtocol) -> Traffic:
    """The stream that a background other than `none` is."""
    return Traffic(
        transport="tcp",
        ip=ip,
        payload_bytes=_WRITE_BYTES,
        rate=None,
        direction=_DIRECTIONS[background],
        congestion_control=_CONGESTION_CONTROL,
    )


async def measure_beside(
    stream: Workload,
    driver: LoadDriver,
    client: TrafficNode,
    server: TrafficNode,
    workload: Workload,
    window: WindowPlan,
) -> Measurement:
    """One trial of a driver that keeps time, with a stream to another port of the same node beside it.

    Both connect and begin at once, while the path is still free. The metrics are those of the driver, and
    how much the stream carried in the measured window. What crosses the wire is of both, so how much was
    delivered, to which that would be related, is not told. Raises LoadError, or the node's own error, where
    the traffic has no result, and LoadError where the stream has none: then nothing was under load.
    """
    warm_up_s = BEFORE_S + workload.warm_up_s
    loaded = replace(workload, warm_up_s=warm_up_s, together=True)
    cool_down_s = workload.cool_down_s + AFTER_S
    around = replace(stream, warm_up_s=warm_up_s, cool_down_s=cool_down_s, together=True)
    probe, beside = await together(
        driver.measure(client, server, loaded, window), _carried(client, server, around)
    )
    return replace(
        probe,
        delivered_bytes=None,
        delivered_packets=None,
        metrics={**probe.metrics, **_metrics(beside)},
        series={name: samples[round(BEFORE_S / SERIES_STEP_S) :] for name, samples in probe.series.items()},
        warnings=[*probe.warnings, *_doubts(probe, beside, loaded)],
    )


async def _carried(client: TrafficNode, server: TrafficNode, stream: Workload) -> Measurement:
    try:
        return await engine.DRIVER.measure(client, server, stream, lambda _opens_in, _lasts: None)
    except (NodeError, LoadError) as error:
        raise LoadError(f"the TCP stream beside the measured traffic failed: {error}") from error


def _metrics(beside: Measurement) -> dict[str, float]:
    return {f"background_{name}": beside.metrics[name] for name in _THROUGHPUTS if name in beside.metrics}


def _doubts(probe: Measurement, beside: Measurement, workload: Workload) -> Iterator[LoadWarning]:
    by_direction = [beside.metrics[name] for name in _THROUGHPUTS[1:] if name in beside.metrics]
    carried = min(by_direction, default=beside.metrics["throughput"])
    if carried < max(_NEXT_TO_NOTHING, _own_throughput(probe, workload)):
        yield LoadWarning(
            "idle-background",
            f"the TCP stream beside the measured traffic carried {carried:.3g} Mbit/s: "
            "next to nothing, or less than that traffic itself",
            "The path was hardly under load: lower the rate of what is measured, or see what stalls.",
        )
    for warning in beside.warnings:
        yield replace(warning, message=f"of the TCP stream beside the measured traffic: {warning.message}")


def _own_throughput(probe: Measurement, workload: Workload) -> float:
    """Mbit/s of the measured traffic's own payload, from its beginning to its end."""
    seconds = workload.warm_up_s + workload.measure_s + workload.cool_down_s
    return (probe.delivered_bytes or 0) * 8 / seconds / 1e6
