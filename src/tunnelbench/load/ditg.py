"""D-ITG (Distributed Internet Traffic Generator) 2.8.1, for results that compare with the literature."""

from __future__ import annotations

import re
import secrets

from tunnelbench.load.abilities import Abilities
from tunnelbench.load.base import (
    Completed,
    LoadError,
    LoadWarning,
    Measurement,
    Traffic,
    TrafficNode,
    WindowPlan,
    Workload,
)
from tunnelbench.load.ports import await_listener, require_all_ports

_SIGNALLING_PORT = 9000
_PORTS = range(20_000, 30_000)
"""One of these for each trial: D-ITG can't listen for TCP where a connection has just ended."""
_START_S = 5.0
"""How long the receiver may take to listen, and to write its log at the end, seconds."""
_GRACE_S = 15.0
"""How much longer than planned a trial may take before it is given up, seconds."""
_DECODE_S = 60.0
"""How long the log of a trial may take to decode, seconds."""
_UNREACHABLE_RATE = 10_000_000
"""Packets per second; D-ITG knows no word for as fast as possible."""
_SHORT_RATE = 0.99
_ABILITIES = Abilities(
    kinds=frozenset({("tcp", "stream"), ("udp", "stream")}),
    least_datagram=20,  # It fills smaller ones up with its own header.
)


class Ditg:
    """Runs an ITGRecv and an ITGSend, and reads what ITGDec prints of the receiver's log.

    The log is of the whole flow: there is no warm-up and no cool-down. The sender is the end that the
    direction names, and opens the connection for TCP too.

    What D-ITG calls by the same words is not quite the same:

    - *jitter* is the mean difference of the delays of successive packets, without the smoothing of RFC 3550;
    - *delay* runs from when a packet really left, so that a late sender hides delay; D-ITG prints its mean
      and its extremes, of which `latency_max` is here;
    - *loss* and what was `offered` are by the numbers of the packets that arrived, so that what is lost after
      the last of these is not seen.
    """

    name = "ditg"
    title = "D-ITG"
    measures = frozenset({"throughput", "offered", "loss", "jitter", "latency_max", "packets_per_second"})
    programs = frozenset({"ITGSend", "ITGRecv", "ITGDec"})

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
        require_all_ports(self.title, workload)
        forward = workload.direction == "forward"
        sender, receiver = (client, server) if forward else (server, client)
        log = f"/tmp/ditg-{secrets.token_hex(4)}.log"
        process = await receiver.spawn(*receiver_arguments(workload, log))
        try:
            await await_listener(receiver, "tcp", _SIGNALLING_PORT, _START_S)
            window(0.0, workload.measure_s)
            sent = await sender.run(
                *sender_arguments(workload, secrets.choice(_PORTS)),
                timeout=_START_S + workload.measure_s + _GRACE_S,
                check=False,
            )
            if sent.status != 0 or b"Started sending" not in sent.stdout:
                said = (sent.stdout + sent.stderr).decode(errors="replace").strip()
                raise LoadError(f"ITGSend ended with {sent.status} and sent nothing; its last words:\n{said}")
            await process.line("Finish on", _START_S)
        finally:
            await process.stop()
        try:
            decoded = await receiver.run("ITGDec", log, timeout=_DECODE_S, check=False)
        finally:
            await receiver.run("rm", "-f", log, timeout=_START_S)
        return parse(decoded, workload)


def receiver_arguments(workload: Workload, log: str) -> list[str]:
    """The receiver's command."""
    return ["ITGRecv", "-a", _destination(workload), "-l", log]


def sender_arguments(workload: Workload, port: int) -> list[str]:
    """The sender's command; it has the receiver listen at the port."""
    asked = workload.bits_per_second
    rate = _UNREACHABLE_RATE if asked is None else asked / 8 / workload.payload
    arguments = ["ITGSend", "-a", _destination(workload), "-rp", str(port)]
    arguments += ["-T", workload.transport.upper(), "-C", f"{rate:.6f}", "-c", str(workload.payload_bytes)]
    return [*arguments, "-t", str(round(workload.measure_s * 1000))]


def parse(decoded: Completed, workload: Workload) -> Measurement:
    """The metrics in ITGDec's summary; raises LoadError where it has none or nothing arrived."""
    summary = decoded.stdout.decode(errors="replace").partition("TOTAL RESULTS")[2]
    values = {name: float(value) for name, value in re.findall(r"(?m)^(\w[\w -]*?) += +([\d.]+)", summary)}
    try:
        seconds, packets = values["Total time"], values["Total packets"]
        received_bytes, dropped = values["Bytes received"], values["Packets dropped"]
        jitter_s, longest_s = values["Average jitter"], values["Maximum delay"]
    except KeyError as missing:
        said = decoded.stderr.decode(errors="replace").strip() or "nothing arrived"
        raise LoadError(f"ITGDec printed no {missing.args[0]}: {said}") from None
    if packets == 0 or seconds == 0:
        raise LoadError("D-ITG received nothing that could be timed")
    metrics = {"throughput": received_bytes * 8 / seconds / 1e6}
    if workload.transport == "tcp":
        return Measurement(metrics=metrics)
    offered = (packets + dropped) * workload.payload * 8 / seconds
    metrics |= {
        "offered": offered / 1e6,
        "loss": dropped / (packets + dropped),
        "jitter": jitter_s * 1000,
        "latency_max": longest_s * 1000,
        "packets_per_second": packets / seconds,
    }
    return Measurement(metrics=metrics, warnings=_doubts(offered, workload.bits_per_second))


def _doubts(offered: float, asked: float | None) -> list[LoadWarning]:
    if asked is None or offered >= _SHORT_RATE * asked:
        return []
    return [
        LoadWarning(
            "rate-not-reached",
            f"{offered / 1e6:.4g} Mbit/s were sent instead of {asked / 1e6:.4g}",
            "D-ITG waits too long between packets on a busy machine: use the load engine, or lower the rate.",
        )
    ]


def _destination(workload: Workload) -> str:
    return workload.server.address if workload.direction == "forward" else workload.client_address


DRIVER = Ditg()
