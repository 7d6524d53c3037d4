"""The product's own load: the traffic engine in the node agents at both ends."""

from __future__ import annotations

import secrets
from asyncio import gather
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace

from tunnelbench.lab.traffic import (
    DEFAULT_LINGER,
    Batched,
    BitsPerSecond,
    Constant,
    Departures,
    FlowReport,
    FlowSeries,
    Histogram,
    MaximumRate,
    Random,
    Schedule,
    Series,
    Side,
    SocketOptions,
    TcpConnect,
    TcpConnected,
    TcpListen,
    TcpListened,
    TcpOptions,
    UdpReceive,
    UdpReceived,
    UdpSend,
    UdpSent,
    VoiceQuality,
)
from tunnelbench.load import doubts
from tunnelbench.load.abilities import Abilities
from tunnelbench.load.base import (
    Endpoint,
    LoadError,
    LogEnd,
    Measurement,
    NodeFile,
    Traffic,
    TrafficHandle,
    TrafficNode,
    WindowPlan,
    Workload,
)
from tunnelbench.load.clocks import ClockOffset, clock_offset
from tunnelbench.study.model import Socket

_LEAD_NS = 200_000_000
"""From planning a trial to its start, ns: both ends must be ready by then."""
_GRACE_S = 10.0
"""How much longer than planned a trial may take before it is given up, seconds."""
_SENT_LOG = "/run/tunnelbench-sent.parquet"
_RECEIVED_LOG = "/run/tunnelbench-received.parquet"
"""Packet logs on the nodes; those of the next trial replace them."""
_BATCH = 64
"""Datagrams per system call; only such as are due, so that it changes no pace."""
_ABILITIES = Abilities(
    kinds=frozenset({("tcp", "stream"), ("udp", "stream")}),
    most_streams=128,
    congestion_control=True,
    least_datagram=12,  # The header that tells its number and when it was due.
    socket=frozenset({"dscp", "ttl", "dont_fragment", "buffer", "mss", "no_delay"}),
)


class Engine:
    """Drives the traffic engine in the node agents."""

    name = "engine"
    title = "tunnelbench engine"
    measures = frozenset(
        {
            "throughput",
            "offered",
            "loss",
            "duplicates",
            "reordering",
            "jitter",
            "jitter_last",
            "latency_p50",
            "latency_p90",
            "latency_p99",
            "latency_p999",
            "latency_max",
            "packets_per_second",
            "ipdv_p50",
            "ipdv_p99",
            "pdv_p50",
            "pdv_p99",
            "pdv_p999",
            "reordering_extent_max",
            "loss_burst_mean",
            "r_factor",
            "mos",
        }
    )
    programs = frozenset[str]()

    chooses = frozenset({"content"})

    def refusal(self, traffic: Traffic) -> str | None:
        """Why it can't make this traffic; None where it can."""
        return _ABILITIES.refusal(self.title, traffic)

    async def measure(
        self, client: TrafficNode, server: TrafficNode, workload: Workload, window: WindowPlan
    ) -> Measurement:
        """Runs one trial; raises LoadError, or the node's own error, where it has no result."""
        trial = _Trial(client, server, workload, await clock_offset(client, server), await client.clock())
        window(_LEAD_NS / 1e9 + workload.warm_up_s, workload.measure_s)
        return await (trial.tcp() if workload.transport == "tcp" else trial.udp())


@dataclass(frozen=True)
class _Trial:
    client: TrafficNode
    server: TrafficNode
    workload: Workload
    server_clock: ClockOffset
    planned_at: int
    """Of the client's clock, ns."""

    async def tcp(self) -> Measurement:
        workload, session = self.workload, secrets.randbits(64)
        options = TcpOptions(
            write_bytes=workload.payload,
            streams=workload.streams,
            content=workload.content or Random(),
            congestion_control=workload.congestion_control,
            mss=workload.socket.mss,
            no_delay=workload.socket.no_delay,
            socket=_socket_options(workload.socket),
        )
        client_side: Side = "send" if workload.direction == "forward" else "receive"
        server_side: Side = "receive" if workload.direction == "forward" else "send"
        listen = TcpListen(
            bind=str(workload.server),
            session=session,
            schedule=self._server_schedule,
            side=server_side,
            options=options,
        )
        async with AsyncExitStack() as running:
            listener = await self.server.start_traffic(listen, TcpListened)
            running.push_async_callback(listener.stop)
            connect = TcpConnect(
                destination=str(_reached(workload.connect, listener)),
                session=session,
                schedule=self._client_schedule,
                side=client_side,
                options=options,
            )
            connector = await self.client.start_traffic(connect, TcpConnected)
            running.push_async_callback(connector.stop)
            connected, listened = await gather(
                connector.outcome(self._timeout), listener.outcome(self._timeout)
            )
        received = (listened if workload.direction == "forward" else connected).flow.received
        if received is None:
            raise LoadError("the receiving end of the trial says that it received nothing")
        return Measurement(
            delivered_bytes=received.total_bytes,
            metrics={"throughput": self._megabits_per_second(received.measured_bytes)},
            series={"throughput": _throughput(received.series)},
            warnings=doubts.of_tcp(received, max(connected.clock_step, listened.clock_step, key=abs)),
        )

    async def udp(self) -> Measurement:
        workload, session = self.workload, secrets.randbits(16)
        forward = workload.direction == "forward"
        sending, receiving = (self.client, self.server) if forward else (self.server, self.client)
        schedules = (self._client_schedule, self._server_schedule)
        send_schedule, receive_schedule = schedules if forward else schedules[::-1]
        bind = workload.server if forward else Endpoint(workload.client_address, 0)
        receive = UdpReceive(
            bind=str(bind),
            session=session,
            schedule=receive_schedule,
            socket=_socket_options(workload.socket),
            log=_RECEIVED_LOG if workload.packet_log else None,
        )
        async with AsyncExitStack() as running:
            receiver = await receiving.start_traffic(receive, UdpReceived)
            running.push_async_callback(receiver.stop)
            send = UdpSend(
                destination=str(_reached(workload.connect if forward else bind, receiver)),
                session=session,
                schedule=send_schedule,
                departures=_departures(workload.bits_per_second),
                sizes=Constant(workload.payload),
                mode=Batched(_BATCH),
                content=workload.content or Random(),
                socket=_socket_options(workload.socket),
                log=_SENT_LOG if workload.packet_log else None,
            )
            sender = await sending.start_traffic(send, UdpSent)
            running.push_async_callback(sender.stop)
            sent, received = await gather(sender.outcome(self._timeout), receiver.outcome(self._timeout))
        measurement = self._udp_measurement(sent, received)
        if not workload.packet_log:
            return measurement
        logs: dict[LogEnd, NodeFile] = {
            "sender": NodeFile(sending, _SENT_LOG),
            "receiver": NodeFile(receiving, _RECEIVED_LOG),
        }
        return replace(measurement, packet_logs=logs)

    def _udp_measurement(self, sent: UdpSent, received: UdpReceived) -> Measurement:
        flow = received.flow
        if flow.delay is None or flow.measured.packets == 0:
            raise LoadError(f"none of {sent.measured.packets} datagrams arrived")
        metrics = {
            "throughput": self._megabits_per_second(flow.arrived.bytes),
            "offered": sent.achieved_rate / 1e6,
            "loss": 1 - flow.measured.packets / sent.measured.packets,
            "duplicates": flow.duplicates / flow.measured.packets,
            "reordering": flow.reordered / flow.measured.packets,
            "packets_per_second": flow.arrived.packets / self.workload.measure_s,
            **_quantiles("latency", flow.delay, "p50", "p90", "p99", "p999", "max"),
            **_variation(flow),
            **_voice(received.voice),
        }
        histograms = {
            "latency": flow.delay,
            "ipdv": flow.ipdv and flow.ipdv.absolute,
            "pdv": flow.pdv,
            "departure_error": sent.departure_error,
        }
        return Measurement(
            delivered_bytes=flow.total.bytes,
            delivered_packets=flow.total.packets,
            metrics=metrics,
            histograms={name: one.encoded for name, one in histograms.items() if one is not None},
            series={
                "throughput": _throughput(flow.series),
                "packets_per_second": [count * 1e9 / flow.series.step for count in flow.series.packets],
            },
            warnings=doubts.of_udp(sent, received, self.server_clock),
        )

    @property
    def _client_schedule(self) -> Schedule:
        workload = self.workload
        return Schedule(
            start_at=self.planned_at + _LEAD_NS,
            warm_up=_nanoseconds(workload.warm_up_s),
            measure=_nanoseconds(workload.measure_s),
            cool_down=_nanoseconds(workload.cool_down_s),
        )

    @property
    def _server_schedule(self) -> Schedule:
        schedule = self._client_schedule
        start_at = schedule.start_at + self.server_clock.offset
        return Schedule(start_at, schedule.warm_up, schedule.measure, schedule.cool_down)

    @property
    def _timeout(self) -> float:
        workload = self.workload
        sending = workload.warm_up_s + workload.measure_s + workload.cool_down_s
        return (_LEAD_NS + DEFAULT_LINGER) / 1e9 + sending + _GRACE_S

    def _megabits_per_second(self, measured_bytes: int) -> float:
        return measured_bytes * 8 / self.workload.measure_s / 1e6


def _reached(connect: Endpoint, listener: TrafficHandle[object]) -> Endpoint:
    """Where the other end reaches a listener, at the port that it got where none is named."""
    if connect.port != 0:
        return connect
    if listener.bound_port is None:
        raise LoadError("the listener does not say on which port it listens")
    return Endpoint(connect.address, listener.bound_port)


def _departures(bits_per_second: int | None) -> Departures:
    return MaximumRate() if bits_per_second is None else BitsPerSecond(bits_per_second)


def _socket_options(asked: Socket) -> SocketOptions:
    return SocketOptions(
        dscp=asked.dscp, ttl=asked.ttl, dont_fragment=asked.dont_fragment or None, buffer=asked.buffer
    )


def _variation(flow: FlowReport) -> dict[str, float]:
    """What there is only where enough arrived, something was reordered or something was lost."""
    metrics = dict[str, float]()
    if flow.jitter_mean is not None and flow.jitter_last is not None:
        metrics |= {"jitter": flow.jitter_mean / 1e6, "jitter_last": flow.jitter_last / 1e6}
    if flow.ipdv is not None:
        metrics |= _quantiles("ipdv", flow.ipdv.absolute, "p50", "p99")
    if flow.pdv is not None:
        metrics |= _quantiles("pdv", flow.pdv, "p50", "p99", "p999")
    if flow.reordering_extent is not None:
        metrics["reordering_extent_max"] = flow.reordering_extent.max
    if flow.loss.mean is not None:
        metrics["loss_burst_mean"] = flow.loss.mean
    return metrics


def _voice(voice: VoiceQuality | None) -> dict[str, float]:
    return {} if voice is None else {"r_factor": voice.r_factor, "mos": voice.mos}


def _quantiles(name: str, times: Histogram, *quantiles: str) -> dict[str, float]:
    return {f"{name}_{quantile}": getattr(times, quantile) / 1e6 for quantile in quantiles}


def _throughput(series: Series | FlowSeries) -> list[float]:
    return [count * 8e3 / series.step for count in series.bytes]


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)


DRIVER = Engine()
