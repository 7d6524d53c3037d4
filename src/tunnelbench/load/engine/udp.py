"""Datagrams, one way or both."""

from __future__ import annotations

import math
import secrets
from asyncio import gather
from contextlib import AsyncExitStack
from dataclasses import replace

from tunnelbench.lab.traffic import (
    Batched,
    PerPacket,
    Random,
    Segmented,
    SendMode,
    UdpReceive,
    UdpReceived,
    UdpSend,
    UdpSent,
)
from tunnelbench.load.base import (
    Endpoint,
    LogEnd,
    Measurement,
    NodeFile,
    NothingArrivedError,
    TrafficHandle,
)
from tunnelbench.load.both_ways import BOTH_WAYS, together
from tunnelbench.load.engine import doubts, metrics
from tunnelbench.load.engine.scene import Scene, ended, reached
from tunnelbench.load.engine.shape import Shape
from tunnelbench.study.vocabulary import Direction, Sending

MEASURES = metrics.OF_FLOWS | {
    *("throughput", "offered", "departure_error_p99", "loss", "r_factor", "mos"),
    *BOTH_WAYS,
}

_SENT_LOG = "/run/tunnelbench-sent.parquet"
_RECEIVED_LOG = "/run/tunnelbench-received.parquet"
"""Packet logs on the nodes; those of the next trial replace them."""

_MODES: dict[Sending, SendMode] = {
    # Only datagrams that are due, so that it changes no pace.
    "batched": Batched(256),
    "per-packet": PerPacket(),
    "segmented": Segmented(64),
}


async def measure(scene: Scene) -> Measurement:
    """One trial; raises LoadError where nothing arrived."""
    async with AsyncExitStack() as running:
        flows = [await _start(scene, forward, running) for forward in _WAYS[scene.workload.direction]]
        measurements = await gather(*(_finish(scene, *flow) for flow in flows))
    measurement = together(*measurements) if len(flows) == 2 else measurements[0]
    return replace(measurement, packet_logs=_logs(scene)) if scene.workload.packet_log else measurement


def _logs(scene: Scene) -> dict[LogEnd, NodeFile]:
    logs: dict[LogEnd, NodeFile] = {}
    for forward in _WAYS[scene.workload.direction]:
        sending, receiving = (scene.client, scene.server) if forward else (scene.server, scene.client)
        # In both directions at once, each end has a log of what it sent and one of what it received.
        is_second = scene.workload.direction == "both" and not forward
        logs["sender-reverse" if is_second else "sender"] = NodeFile(sending, _SENT_LOG)
        logs["receiver-reverse" if is_second else "receiver"] = NodeFile(receiving, _RECEIVED_LOG)
    return logs


_WAYS: dict[Direction, tuple[bool, ...]] = {"forward": (True,), "reverse": (False,), "both": (True, False)}
"""Whether each flow goes forward."""

_Flow = tuple[TrafficHandle[UdpSent], TrafficHandle[UdpReceived]]


async def _start(scene: Scene, forward: bool, running: AsyncExitStack) -> _Flow:
    workload, session, shape = scene.workload, secrets.randbits(16), Shape.of(scene.workload)
    ends = (scene.client, scene.client_schedule), (scene.server, scene.server_schedule)
    (sending, send_schedule), (receiving, receive_schedule) = ends if forward else ends[::-1]
    bind = workload.server if forward else Endpoint(workload.client_address, 0)
    receive = UdpReceive(
        bind=str(bind),
        session=session,
        schedule=receive_schedule,
        voice=shape.codec,
        socket=scene.socket_options,
        log=_RECEIVED_LOG if workload.packet_log else None,
    )
    receiver = await receiving.start_traffic(receive, UdpReceived)
    running.push_async_callback(ended, receiver)
    send = UdpSend(
        destination=str(reached(workload.connect if forward else bind, receiver)),
        session=session,
        schedule=send_schedule,
        departures=shape.departures,
        sizes=shape.sizes,
        seed=workload.seed,
        mode=_MODES[workload.sending or "batched"],
        content=workload.content or Random(),
        socket=scene.socket_options,
        log=_SENT_LOG if workload.packet_log else None,
    )
    sender = await sending.start_traffic(send, UdpSent)
    running.push_async_callback(ended, sender)
    return sender, receiver


async def _finish(
    scene: Scene, sender: TrafficHandle[UdpSent], receiver: TrafficHandle[UdpReceived]
) -> Measurement:
    return _measurement(scene, *await gather(sender.outcome(scene.timeout), receiver.outcome(scene.timeout)))


def _measurement(scene: Scene, sent: UdpSent, received: UdpReceived) -> Measurement:
    flow = received.flow
    if flow.measured.packets == 0:
        raise NothingArrivedError(sent.measured.packets, sent.achieved_rate / 1e6)
    voice = received.voice
    return Measurement(
        delivered_bytes=flow.total.bytes,
        delivered_packets=flow.total.packets,
        metrics={
            "throughput": scene.megabits_per_second(flow.arrived.bytes),
            "offered": sent.achieved_rate / 1e6,
            "loss": 1 - flow.measured.packets / sent.measured.packets,
            **metrics.of_flow(flow, scene.workload.measure_s),
            **_departure_error(sent),
            **({} if voice is None else {"r_factor": voice.r_factor, "mos": voice.mos}),
        },
        histograms=metrics.encoded(
            {**metrics.histograms_of_flow(flow), "departure_error": sent.departure_error}
        ),
        series={
            "throughput": metrics.throughput(flow.series),
            "packets_per_second": [count * 1e9 / flow.series.step for count in flow.series.packets],
            "latency": [math.nan if delay is None else delay / 1e6 for delay in flow.series.delay_mean],
        },
        warnings=doubts.of_udp(scene, sent, received, _MODES[scene.workload.sending or "batched"]),
    )


def _departure_error(sent: UdpSent) -> dict[str, float]:
    """None at the highest rate, where every departure is on time."""
    if sent.departure_error is None:
        return {}
    return metrics.quantiles("departure_error", sent.departure_error, "p99")
