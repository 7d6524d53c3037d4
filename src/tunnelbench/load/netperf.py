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
_OUTPUT = (
    *("THROUGHPUT", "ELAPSED_TIME", "LOCAL_SEND_THROUGHPUT"),
    *("LOCAL_BYTES_SENT", "REMOTE_BYTES_RECVD", "REMOTE_RECV_CALLS"),
)
_ABILITIES = Abilities(
    kinds=frozenset({("tcp", "stream"), ("udp", "stream")}),
    paced=False,  # Debian builds it without rate control.
)


class Netperf:
    """Runs a netserver and a netperf with its omni test, and reads the keys that it prints.

    The test is TCP_STREAM, TCP_MAERTS or UDP_STREAM by another name. netperf counts whole seconds, so the
    window is rounded up, and leaves nothing out: there is no warm-up and no cool-down. In Debian it is built
    without rate control: it sends UDP as fast as possible only. It can't receive UDP, so in direction
    `reverse` the two ends change places for UDP.
    """

    name = "netperf"
    title = "netperf"
    measures = frozenset({"throughput", "offered", "loss", "packets_per_second"})
    programs = frozenset({"netperf", "netserver"})

    chooses = frozenset[str]()

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
    receives = workload.direction == "reverse" and not _swapped(workload)
    # The size of a write here, or after a comma there.
    size = f",{workload.payload_bytes}" if receives else str(workload.payload_bytes)
    arguments = ["netperf", "-H", _listening_address(workload), _family(workload), "-p", str(_CONTROL_PORT)]
    arguments += ["-t", "omni", "-l", str(_seconds(workload)), "-P", "0", "-f", "m", "--"]
    arguments += ["-T", workload.transport, "-d", "recv" if receives else "send", "-m", size]
    # Without -R, netperf sends UDP to directly attached networks only.
    return [*arguments, "-P", f",{workload.server.port}", "-R", "1", "-k", ",".join(_OUTPUT)]


def parse(completed: Completed, workload: Workload) -> Measurement:
    """The metrics in the keys that netperf printed; raises LoadError where it failed or received nothing."""
    text = completed.stdout.decode(errors="replace")
    found = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if completed.status != 0 or not found.keys() >= set(_OUTPUT):
        said = completed.stderr.decode(errors="replace").strip() or text.strip()
        raise LoadError(f"netperf ended with {completed.status} and without all its results: {said}")
    values = {name: float(found[name]) for name in _OUTPUT}
    if values["THROUGHPUT"] == 0:
        raise LoadError("netperf received nothing")
    metrics = {"throughput": values["THROUGHPUT"]}
    if workload.transport == "udp":
        metrics |= {
            "offered": values["LOCAL_SEND_THROUGHPUT"],
            "loss": 1 - values["REMOTE_BYTES_RECVD"] / values["LOCAL_BYTES_SENT"],
            "packets_per_second": values["REMOTE_RECV_CALLS"] / values["ELAPSED_TIME"],
        }
    return Measurement(metrics=metrics)


def _swapped(workload: Workload) -> bool:
    return workload.transport == "udp" and workload.direction == "reverse"


def _listening_address(workload: Workload) -> str:
    return workload.client_address if _swapped(workload) else workload.server.address


def _family(workload: Workload) -> str:
    return "-4" if workload.ip == "ipv4" else "-6"


def _seconds(workload: Workload) -> int:
    return max(1, math.ceil(workload.measure_s))


DRIVER = Netperf()
