"""netperf, for results that compare with the literature. Debian has it from release 13 on."""

from __future__ import annotations

import math

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
from tunnelbench.load.ports import await_listener, require_all_ports

_CONTROL_PORT = 12865
_START_S = 5.0
"""How long the server may take to listen, seconds."""
_GRACE_S = 15.0
"""How much longer than planned a trial may take before it is given up, seconds."""
_TRANSACTIONS = {
    ("tcp", "request-response"): "TCP_RR",
    ("tcp", "connect-request-response"): "TCP_CRR",
    ("udp", "request-response"): "UDP_RR",
}
"""The test for each kind of transactions."""
_TRANSACTION_OUTPUT = ("TRANSACTION_RATE", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "MAX_LATENCY")
_OUTPUT = (
    *("THROUGHPUT", "ELAPSED_TIME", "LOCAL_SEND_THROUGHPUT"),
    *("LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD", "REMOTE_RECV_CALLS"),
)
_ABILITIES = Abilities(
    kinds=frozenset(
        {
            ("tcp", "stream"),
            ("udp", "stream"),
            ("tcp", "request-response"),
            ("udp", "request-response"),
            ("tcp", "connect-request-response"),
        }
    ),
    paced=False,  # Debian builds it without rate control.
    congestion_control=True,
    socket=frozenset({"buffer", "no_delay"}),
)


class Netperf:
    """Runs a netserver and a netperf with its omni test, and reads the keys that it prints.

    The test is TCP_STREAM, TCP_MAERTS or UDP_STREAM by another name. netperf counts whole seconds, so the
    window is rounded up, and leaves nothing out: there is no warm-up and no cool-down. In Debian it is built
    without rate control: it sends UDP as fast as possible only. It can't receive UDP, so in direction
    `reverse` the two ends change places for UDP. Transactions are its tests TCP_RR, TCP_CRR and UDP_RR, one
    at a time; it tells their round trips in whole microseconds.
    """

    name = "netperf"
    title = "netperf"
    measures = frozenset(
        {
            *("throughput", "offered", "loss", "packets_per_second", "transactions_per_second"),
            *("round_trip_p50", "round_trip_p90", "round_trip_p99", "round_trip_max"),
        }
    )
    programs = frozenset({"netperf", "netserver"})

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
        if _swapped(workload):
            client, server = server, client
        process = await server.spawn(*server_arguments(workload))
        try:
            await await_listener(server, "tcp", _CONTROL_PORT, _START_S)
            window(0.0, _seconds(workload))
            completed = await client.run(
                *client_arguments(workload),
                timeout=_START_S + _seconds(workload) + _GRACE_S,
                check=False,
            )
        finally:
            await process.stop()
        return parse(completed, workload)


def server_arguments(workload: Workload) -> list[str]:
    """The server's command; it stays in the foreground."""
    return [
        "netserver",
        "-D",
        _family(workload),
        "-L",
        _listening_address(workload),
        "-p",
        str(_CONTROL_PORT),
    ]


def client_arguments(workload: Workload) -> list[str]:
    """The client's command."""
    arguments = ["netperf", "-H", _listening_address(workload), _family(workload), "-p", str(_CONTROL_PORT)]
    arguments += ["-l", str(_seconds(workload)), "-P", "0"]
    if workload.pattern == "stream":
        arguments += _stream_arguments(workload)
    else:
        arguments += _transaction_arguments(workload)
    # Without -R, netperf sends UDP to directly attached networks only.
    return [*arguments, "-P", f",{workload.server.port}", "-R", "1", "-k", ",".join(_output(workload))]


def _stream_arguments(workload: Workload) -> list[str]:
    receives = workload.direction == "reverse" and not _swapped(workload)
    # The size of a write here, or after a comma there.
    size = f",{workload.payload_bytes}" if receives else str(workload.payload_bytes)
    arguments = ["-t", "omni", "-f", "m", "--"]
    arguments += ["-T", workload.transport, "-d", "recv" if receives else "send", "-m", size]
    return [*arguments, *_options(workload)]


def _transaction_arguments(workload: Workload) -> list[str]:
    response = workload.payload if workload.response_bytes is None else workload.response_bytes
    test = _TRANSACTIONS[workload.transport, workload.pattern]
    # Without -j, netperf keeps no distribution.
    return ["-t", test, "-j", "--", "-r", f"{workload.payload},{response}", *_options(workload)]


def _options(workload: Workload) -> list[str]:
    """What is asked of the sockets of both ends."""
    options: list[str] = []
    if workload.socket.buffer is not None:
        options += [text for end in ("-s", "-S") for text in (end, str(workload.socket.buffer))]
    if workload.transport == "tcp" and workload.socket.no_delay:
        options += ["-D", "L,R"]
    if workload.congestion_control is not None:
        options += ["-K", f"{workload.congestion_control},{workload.congestion_control}"]
    return options


def parse(completed: Completed, workload: Workload) -> Measurement:
    """The metrics in the keys that netperf printed; raises LoadError where it failed or carried nothing."""
    text = completed.stdout.decode(errors="replace")
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    output = _output(workload)
    if completed.status != 0 or not found.keys() >= set(output):
        said = completed.stderr.decode(errors="replace").strip() or text.strip()
        raise LoadError(f"netperf ended with {completed.status} and without all its results: {said}")
    values = {name: float(found[name]) for name in output}
    metrics = _stream(values, workload) if workload.pattern == "stream" else _transactions(values)
    return Measurement(metrics=metrics)


def _stream(values: dict[str, float], workload: Workload) -> dict[str, float]:
    if values["THROUGHPUT"] == 0:
        raise LoadError("netperf received nothing")
    metrics = {"throughput": values["THROUGHPUT"]}
    if workload.transport == "udp":
        metrics |= {
            "offered": values["LOCAL_SEND_THROUGHPUT"],
            "loss": 1 - values["REMOTE_BYTES_RECVD"] / values["LOCAL_BYTES_SENT"],
            "packets_per_second": values["REMOTE_RECV_CALLS"] / values["ELAPSED_TIME"],
        }
    return metrics


def _transactions(values: dict[str, float]) -> dict[str, float]:
    if values["TRANSACTION_RATE"] == 0:
        raise LoadError("netperf completed no transaction")
    round_trips = {name: values[f"{name.upper()}_LATENCY"] / 1e3 for name in ("p50", "p90", "p99", "max")}
    return {
        "transactions_per_second": values["TRANSACTION_RATE"],
        **{f"round_trip_{name}": milliseconds for name, milliseconds in round_trips.items()},
    }


def _output(workload: Workload) -> tuple[str, ...]:
    return _OUTPUT if workload.pattern == "stream" else _TRANSACTION_OUTPUT


def _swapped(workload: Workload) -> bool:
    return workload.transport == "udp" and workload.direction == "reverse"


def _listening_address(workload: Workload) -> str:
    return workload.client_address if _swapped(workload) else workload.server.address


def _family(workload: Workload) -> str:
    return "-4" if workload.ip == "ipv4" else "-6"


def _seconds(workload: Workload) -> int:
    return max(1, math.ceil(workload.measure_s))


DRIVER = Netperf()
