"""iperf 2, for results that compare with the literature of its time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tunnelbench.load.abilities import Abilities
from tunnelbench.load.base import (
    SERIES_STEP_S,
    Completed,
    LoadError,
    Measurement,
    Traffic,
    TrafficNode,
    WindowPlan,
    Workload,
)
from tunnelbench.load.ports import await_listener

_PORT = 5001
_START_S = 5.0
"""How long the server may take to listen, seconds."""
_GRACE_S = 15.0
"""How much longer than planned a trial may take before it is given up, seconds."""
_UNREACHABLE_RATE = "100g"
"""iperf 2 knows no word for as fast as possible."""
_STEPS_PER_SECOND = round(1 / SERIES_STEP_S)
_ABILITIES = Abilities(
    kinds=frozenset({("tcp", "stream"), ("udp", "stream")}),
    least_datagram=16,  # With less, iperf 2.1.8 loses count when the last datagrams arrive.
    congestion_control=True,
    socket=frozenset({"dscp", "buffer", "mss", "no_delay"}),
)


class Iperf:
    """Runs a server and a client of iperf 2, and reads the intervals that both report, in its CSV form.

    The intervals inside the measured window are added up, so that warm-up and cool-down are left out; the
    window is rounded up to tenths of a second. In direction `reverse` the client asks for traffic
    (`--reverse`), which iperf knows from 2.0.14 on. Its jitter is the last value of the RFC 3550
    estimator, its reordering the share of datagrams that came after one with a higher number.
    """

    name = "iperf"
    title = "iperf 2"
    measures = frozenset({"throughput", "offered", "loss", "reordering", "jitter_last", "packets_per_second"})
    programs = frozenset({"iperf"})

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
        span = Span.of(workload)
        process = await server.spawn(*server_arguments(workload))
        try:
            await await_listener(server, workload.transport, workload.server.port or _PORT, _START_S)
            window(span.warm_up * SERIES_STEP_S, span.measured * SERIES_STEP_S)
            asked = await client.run(
                *client_arguments(workload),
                timeout=_START_S + span.total * SERIES_STEP_S + _GRACE_S,
                check=False,
            )
        finally:
            served = await process.stop()
        return parse(asked, served, workload)


@dataclass(frozen=True, slots=True)
class Span:
    """The parts of a trial in steps of `SERIES_STEP_S`."""

    warm_up: int
    measured: int
    total: int

    @classmethod
    def of(cls, workload: Workload) -> Span:
        """The parts of a workload, each rounded up."""
        warm_up, cool_down = _steps(workload.warm_up_s), _steps(workload.cool_down_s)
        measured = max(1, _steps(workload.measure_s))
        return cls(warm_up, measured, warm_up + measured + cool_down)

    @property
    def window(self) -> range:
        """The steps that count."""
        return range(self.warm_up, self.warm_up + self.measured)

    @property
    def window_s(self) -> float:
        """The length of the window, seconds."""
        return self.measured / _STEPS_PER_SECOND


def _steps(seconds: float) -> int:
    # 0.3 s are 3.0000000000000004 steps in floating point.
    return math.ceil(round(seconds * _STEPS_PER_SECOND, 6))


def server_arguments(workload: Workload) -> list[str]:
    """The server's command."""
    arguments = ["iperf", "--server", "-B", workload.server.address, "-p", str(workload.server.port or _PORT)]
    if workload.transport == "udp":
        # Also the most that it reads of a datagram.
        arguments += ["--udp", "-l", str(workload.payload_bytes)]
    return arguments + _common_arguments(workload)


def client_arguments(workload: Workload) -> list[str]:
    """The client's command."""
    port = workload.connect.port or workload.server.port or _PORT
    arguments = ["iperf", "--client", workload.connect.address, "-p", str(port)]
    arguments += ["-l", str(workload.payload_bytes), "-t", f"{Span.of(workload).total * SERIES_STEP_S:.1f}"]
    if workload.transport == "udp":
        arguments += [
            "--udp",
            "-b",
            str(workload.bits_per_second or _UNREACHABLE_RATE),
        ]
    if workload.direction == "reverse":
        arguments.append("--reverse")
    return arguments + _common_arguments(workload)


def _common_arguments(workload: Workload) -> list[str]:
    family = ["-V"] if workload.ip == "ipv6" else []
    return [*family, "-i", f"{SERIES_STEP_S:g}", "-y", "C", *_options(workload)]


def _options(workload: Workload) -> list[str]:
    socket = workload.socket
    asked = {
        "-Z": workload.congestion_control,
        "-w": socket.buffer,
        # The whole octet, of which the code point is the upper six bits (RFC 2474).
        "-S": None if socket.dscp is None else socket.dscp << 2,
    }
    if workload.transport == "tcp":
        asked["-M"] = socket.mss
    options = [text for option, value in asked.items() if value is not None for text in (option, str(value))]
    return [*options, "-N"] if socket.no_delay and workload.transport == "tcp" else options


def parse(asked: Completed, served: Completed, workload: Workload) -> Measurement:
    """The metrics in what client and server printed; raises LoadError where nothing was received."""
    forward = workload.direction == "forward"
    sent, received = (_intervals(end) for end in ((asked, served) if forward else (served, asked)))
    span = Span.of(workload)
    window = [received[step] for step in span.window if step in received]
    received_bytes = sum(interval.bytes for interval in window)
    if received_bytes == 0:
        said = " / ".join(f"{asked.stderr.decode(errors='replace')}".split("\n")).strip(" /")
        raise LoadError(f"iperf 2 received nothing in the measured window: {said or 'it gave no reason'}")
    metrics = {"throughput": received_bytes * 8 / span.window_s / 1e6}
    if workload.transport == "udp":
        sent_bytes = sum(sent[step].bytes for step in span.window if step in sent)
        metrics |= {"offered": sent_bytes * 8 / span.window_s / 1e6, **_of_datagrams(window, span.window_s)}
    steps = range(span.total)
    rates = [received[step].bytes * 8 / SERIES_STEP_S / 1e6 if step in received else 0.0 for step in steps]
    return Measurement(metrics=metrics, series={"throughput": rates})


def _of_datagrams(window: list[_Interval], seconds: float) -> dict[str, float]:
    total, lost = sum(interval.datagrams for interval in window), sum(interval.lost for interval in window)
    arrived = total - lost
    if total <= 0 or arrived <= 0:
        raise LoadError(f"iperf 2 lost count: it says that {lost} of {total} datagrams were lost")
    return {
        # A datagram that is late counts as lost first, and is taken back in the interval in which it comes.
        "loss": max(0.0, lost / total),
        "reordering": sum(interval.reordered for interval in window) / arrived,
        "jitter_last": window[-1].jitter_ms,
        "packets_per_second": arrived / seconds,
    }


@dataclass(frozen=True, slots=True)
class _Interval:
    """A line of the CSV form; all but the bytes are of UDP."""

    bytes: int
    jitter_ms: float = 0.0
    lost: int = 0
    datagrams: int = 0
    reordered: int = 0


def _intervals(end: Completed) -> Mapping[int, _Interval]:
    """What an end reports of each step of the trial; its last line, the sum of all, is left out."""
    intervals: dict[int, _Interval] = {}
    for line in end.stdout.decode(errors="replace").splitlines():
        if line.startswith("["):
            # iperf 2.0 says among the CSV how many datagrams it sent.
            continue
        fields = line.split(",")
        try:
            begins, ends = (float(time) for time in fields[6].split("-"))
            interval = _interval(fields)
        except (ValueError, IndexError):
            raise LoadError(f"iperf 2 printed a line that is no interval: {line[:200]}") from None
        if ends - begins < 1.5 * SERIES_STEP_S:
            # In a trial of one step, the sum looks like an interval, but comes later.
            intervals.setdefault(round(begins * _STEPS_PER_SECOND), interval)
    return intervals


def _interval(fields: list[str]) -> _Interval:
    if len(fields) == 9:
        return _Interval(int(fields[7]))
    return _Interval(int(fields[7]), float(fields[9]), int(fields[10]), int(fields[11]), int(fields[13]))


DRIVER = Iperf()
