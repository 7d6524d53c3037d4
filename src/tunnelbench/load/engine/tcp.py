"""TCP: bulk in several streams or the messages of a profile, one way or both."""

from __future__ import annotations

import secrets
from asyncio import gather
from contextlib import AsyncExitStack

from tunnelbench.lab.traffic import (
    Messages,
    Random,
    Side,
    TcpConnect,
    TcpConnected,
    TcpFlow,
    TcpListen,
    TcpListened,
    TcpOptions,
    TcpReceived,
    TcpSent,
)
from tunnelbench.load.base import LoadError, Measurement, Workload
from tunnelbench.load.both_ways import BOTH_WAYS, together
from tunnelbench.load.engine import doubts, metrics, tcp_information
from tunnelbench.load.engine.scene import Scene, ended, reached
from tunnelbench.load.engine.shape import Shape
from tunnelbench.study.vocabulary import Direction

MEASURES = (metrics.OF_FLOWS - {"duplicates", "reordering", "reordering_extent_max", "loss_burst_mean"}) | {
    *("throughput", "retransmits", "congestion_window", "tcp_round_trip_p50", "tcp_round_trip_p99"),
    *BOTH_WAYS,
}

_SIDES: dict[Direction, tuple[Side, Side]] = {
    "forward": ("send", "receive"),
    "reverse": ("receive", "send"),
    "both": ("both", "both"),
}
"""What the client does, and what the server."""

_UNUSED_WRITE_BYTES = 65_536
"""A job of messages writes these, not so many bytes at once."""


async def measure(scene: Scene) -> Measurement:
    """One trial; the client always connects."""
    workload, session = scene.workload, secrets.randbits(64)
    client_side, server_side = _SIDES[workload.direction]
    options = _options(scene)
    listen = TcpListen(
        bind=str(workload.server),
        session=session,
        schedule=scene.server_schedule,
        side=server_side,
        options=options,
    )
    async with AsyncExitStack() as running:
        listener = await scene.server.start_traffic(listen, TcpListened)
        running.push_async_callback(ended, listener)
        connect = TcpConnect(
            destination=str(reached(workload.connect, listener)),
            proxy=str(workload.proxy) if workload.proxy else None,
            session=session,
            schedule=scene.client_schedule,
            side=client_side,
            options=options,
        )
        connector = await scene.client.start_traffic(connect, TcpConnected)
        running.push_async_callback(ended, connector)
        connected, listened = await gather(connector.outcome(scene.timeout), listener.outcome(scene.timeout))
    clock_step = max(connected.clock_step, listened.clock_step, key=abs)
    client, server = connected.flow, listened.flow
    match workload.direction:
        case "forward":
            return _measurement(scene, client, server, clock_step)
        case "reverse":
            return _measurement(scene, server, client, clock_step)
        case "both":
            forward = _measurement(scene, client, server, clock_step)
            return together(forward, _measurement(scene, server, client, 0))


def _options(scene: Scene) -> TcpOptions:
    workload = scene.workload
    return TcpOptions(
        write_bytes=workload.payload_bytes or _UNUSED_WRITE_BYTES,
        streams=workload.streams,
        messages=_messages(workload),
        content=workload.content or Random(),
        congestion_control=workload.congestion_control,
        mss=workload.socket.mss,
        no_delay=workload.socket.no_delay,
        socket=scene.socket_options,
    )


def _messages(workload: Workload) -> Messages | None:
    if workload.profile == "constant":
        return None
    shape = Shape.of(workload)
    return Messages(departures=shape.departures, sizes=shape.sizes, seed=workload.seed)


def _measurement(scene: Scene, sender: TcpFlow, receiver: TcpFlow, clock_step: int) -> Measurement:
    sent, received = sender.sent, receiver.received
    if sent is None or received is None:
        raise LoadError("the two ends of the trial don't say what was sent and received")
    arrived = {} if received.messages is None else _of_messages(received, scene.workload.measure_s)
    return Measurement(
        delivered_bytes=received.total_bytes,
        metrics={
            "throughput": scene.megabits_per_second(received.measured_bytes),
            **_of_sender(sent, scene.workload.measure_s),
            **arrived,
        },
        histograms=metrics.encoded(
            {
                "tcp_round_trip": sent.round_trip,
                **({} if received.messages is None else metrics.histograms_of_flow(received.messages)),
            }
        ),
        series={"throughput": metrics.throughput(received.series), **tcp_information.series(sent)},
        warnings=doubts.of_tcp(scene, sent, received, clock_step),
    )


def _of_sender(sent: TcpSent, seconds: float) -> dict[str, float]:
    found = {"retransmits": sent.retransmits / seconds}
    window = tcp_information.mean_congestion_window(sent)
    if window is not None:
        found["congestion_window"] = window
    if sent.round_trip is not None:
        found |= metrics.quantiles("tcp_round_trip", sent.round_trip, "p50", "p99")
    return found


def _of_messages(received: TcpReceived, seconds: float) -> dict[str, float]:
    if received.messages is None or received.messages.measured.packets == 0:
        raise LoadError("no message that was due in the measured window arrived")
    found = metrics.of_flow(received.messages, seconds)
    return {name: value for name, value in found.items() if name in MEASURES}
