"""iperf3, for results that compare with the literature."""

from __future__ import annotations

import math

import msgspec

from tunnelbench.load.abilities import Abilities
from tunnelbench.load.base import (
    Completed,
    LoadError,
    Measurement,
    Traffic,
    TrafficNode,
    WindowPlan,
    Workload,
)
from tunnelbench.load.both_ways import BOTH_WAYS, together
from tunnelbench.study.vocabulary import Direction

_PORT = 5201
_START_S = 5.0
"""How long the server may take to listen, and the client to connect, seconds."""
_GRACE_S = 15.0
"""How much longer than planned a trial may take before it is given up, seconds."""
_ABILITIES = Abilities(
    kinds=frozenset({("tcp", "stream"), ("udp", "stream")}),
    directions=frozenset({"forward", "reverse", "both"}),
    most_streams=128,
    congestion_control=True,
    socket=frozenset({"dscp", "buffer", "mss", "no_delay"}),
)


class Iperf3:
    """Runs a server that serves once and a client, and reads the client's JSON report.

    iperf3 counts in whole seconds: warm-up and window are rounded up. It has no cool-down. Its jitter is the
    last value of the RFC 3550 estimator. A given rate of UDP is that of each stream.
    """

    name = "iperf3"
    title = "iperf3"
    measures = frozenset(
        {"throughput", "offered", "loss", "jitter_last", "packets_per_second", "retransmits", *BOTH_WAYS}
    )
    programs = frozenset({"iperf3"})

    chooses = frozenset[str]()
    speaks_socks = False
    keeps_time = False

    def refusal(self, traffic: Traffic) -> str | None:
        """Why it can't make this traffic; None where it can."""
        return _ABILITIES.refusal(self.title, traffic)

    async def measure(
        self, client: TrafficNode, server: TrafficNode, workload: Workload, window: WindowPlan
    ) -> Measurement:
        """Runs one trial; raises LoadError, or the node's own error, where it has no result."""
        process = await server.spawn(*server_arguments(workload))
        try:
            await process.line("Server listening", _START_S)
            window(_warm_up(workload), _window(workload))
            completed = await client.run(
                *client_arguments(workload),
                timeout=_START_S + _warm_up(workload) + _window(workload) + _GRACE_S,
                check=False,
            )
        finally:
            await process.stop()
        return parse(completed, workload)


def server_arguments(workload: Workload) -> list[str]:
    """The server's command: it serves one test and says at once when it listens."""
    port = str(workload.server.port or _PORT)
    family = "-4" if workload.ip == "ipv4" else "-6"
    return [
        "iperf3",
        "--server",
        "--one-off",
        "--forceflush",
        family,
        "-B",
        workload.server.address,
        "-p",
        port,
    ]


def client_arguments(workload: Workload) -> list[str]:
    """The client's command."""
    arguments = [
        "iperf3",
        "--client",
        workload.connect.address,
        "-p",
        str(workload.connect.port or _PORT),
        "--json",
    ]
    arguments += ["-4" if workload.ip == "ipv4" else "-6", "--connect-timeout", str(round(_START_S * 1000))]
    arguments += ["--omit", str(_warm_up(workload)), "--time", str(_window(workload)), "--interval", "0"]
    arguments += ["--length", str(workload.payload_bytes)]
    if workload.transport == "udp":
        arguments += ["--udp", "--bitrate", str(workload.bits_per_second or 0)]
    return [*arguments, *_DIRECTIONS[workload.direction], *_options(workload)]


_DIRECTIONS: dict[Direction, list[str]] = {"forward": [], "reverse": ["--reverse"], "both": ["--bidir"]}


def _options(workload: Workload) -> list[str]:
    socket = workload.socket
    asked = {
        "--parallel": workload.streams if workload.streams > 1 else None,
        "--congestion": workload.congestion_control,
        "--window": socket.buffer,
        # The whole octet, of which the code point is the upper six bits (RFC 2474).
        "--tos": None if socket.dscp is None else socket.dscp << 2,
    }
    if workload.transport == "tcp":
        asked["--set-mss"] = socket.mss
    options = [text for option, value in asked.items() if value is not None for text in (option, str(value))]
    return [*options, "--no-delay"] if socket.no_delay and workload.transport == "tcp" else options


def parse(completed: Completed, workload: Workload) -> Measurement:
    """The metrics in the client's report; raises LoadError where it tells of a failure or isn't whole."""
    try:
        report = msgspec.json.decode(completed.stdout, type=_Report)
    except msgspec.DecodeError as error:
        said = completed.stderr.decode(errors="replace").strip() or str(error)
        raise LoadError(f"iperf3 ended with {completed.status} and without a report: {said}") from None
    if report.error is not None:
        raise LoadError(f"iperf3: {report.error}")
    end = report.end
    if completed.status != 0:
        raise LoadError(f"iperf3 ended with {completed.status} and reported no sums")
    if workload.direction != "both":
        by_client = workload.direction == "reverse"
        return Measurement(metrics=_metrics(end.sum_sent, end.sum_received, workload, by_client))
    forward = _metrics(end.sum_sent, end.sum_received, workload, by_client=False)
    reverse = _metrics(end.sum_sent_bidir_reverse, end.sum_received_bidir_reverse, workload, by_client=True)
    return together(Measurement(metrics=forward), Measurement(metrics=reverse))


def _metrics(
    sent: _Sum | None, received: _Sum | None, workload: Workload, by_client: bool
) -> dict[str, float]:
    """Of one direction; `by_client` says that the client received it."""
    if received is None or sent is None:
        raise LoadError("iperf3 reported no sums")
    if received.bytes == 0:
        raise LoadError("iperf3 received nothing")
    metrics = {"throughput": received.bits_per_second / 1e6}
    if workload.transport == "tcp":
        return metrics | {"retransmits": sent.retransmits / sent.seconds}
    return metrics | {
        "offered": sent.bytes * 8 / sent.seconds / 1e6,
        "loss": _loss(sent, received, by_client),
        "jitter_last": received.jitter_ms,
        "packets_per_second": received.bytes / workload.payload / received.seconds,
    }


def _loss(sent: _Sum, received: _Sum, by_client: bool) -> float:
    if received.lost_packets == 0:
        return 0.0
    if by_client:
        return received.lost_packets / received.packets
    # The server's count of lost datagrams includes the omitted seconds, other than that of received bytes.
    return max(0.0, 1 - received.bytes / sent.bytes)


class _Sum(msgspec.Struct, frozen=True):
    seconds: float
    bytes: int
    bits_per_second: float
    jitter_ms: float = 0.0
    packets: int = 0
    lost_packets: int = 0
    retransmits: int = 0


class _End(msgspec.Struct, frozen=True):
    sum_sent: _Sum | None = None
    sum_received: _Sum | None = None
    sum_sent_bidir_reverse: _Sum | None = None
    sum_received_bidir_reverse: _Sum | None = None


class _Report(msgspec.Struct, frozen=True):
    end: _End = _End()
    error: str | None = None


def _warm_up(workload: Workload) -> int:
    return math.ceil(workload.warm_up_s)


def _window(workload: Workload) -> int:
    return max(1, math.ceil(workload.measure_s))


DRIVER = Iperf3()
