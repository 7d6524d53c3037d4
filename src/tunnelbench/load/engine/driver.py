"""The engine as a load tool: what it can do, and which module does it."""

from __future__ import annotations

from contextlib import suppress

from tunnelbench.lab.connection import StartPassedError
from tunnelbench.load.abilities import Abilities
from tunnelbench.load.base import LoadError, Measurement, Traffic, TrafficNode, WindowPlan, Workload
from tunnelbench.load.engine import icmp, tcp, transactions, udp
from tunnelbench.load.engine.clocks import clock_offset
from tunnelbench.load.engine.scene import Scene
from tunnelbench.load.profiles import profiles
from tunnelbench.study.quantity import Bursts

_ABILITIES = Abilities(
    kinds=frozenset(
        {
            ("tcp", "stream"),
            ("udp", "stream"),
            ("icmp", "stream"),
            ("tcp", "request-response"),
            ("udp", "request-response"),
            ("tcp", "connect-request-response"),
        }
    ),
    profiles=frozenset({"constant", *profiles()}),
    directions=frozenset({"forward", "reverse", "both"}),
    most_streams=128,
    most_requests=128,
    least_datagram=12,  # The header that tells its number and when it was due.
    bursts=True,
    searches=True,
    congestion_control=True,
    socket=frozenset({"dscp", "ttl", "dont_fragment", "buffer", "mss", "no_delay"}),
)


_LEADS_NS = (40_000_000, 300_000_000, 1_500_000_000)
"""How long both ends have to get ready, ns: more where that was too little, as on a busy machine."""
_LEAD_TOGETHER_NS = 500_000_000
"""The same for traffic that starts together with other traffic, ns."""


class Engine:
    """Drives the traffic engine in the node agents."""

    name = "engine"
    title = "tunnelbench engine"
    measures = tcp.MEASURES | udp.MEASURES | icmp.MEASURES | transactions.MEASURES
    programs = frozenset[str]()
    chooses = frozenset({"content", "sending"})
    speaks_socks = True
    keeps_time = True

    def refusal(self, traffic: Traffic) -> str | None:
        """Why it can't make this traffic; None where it can."""
        refusal = _ABILITIES.refusal(self.title, traffic)
        if refusal is not None:
            return refusal
        if traffic.profile != "constant" and traffic.streams > 1:
            return f"{self.title} can't send several streams of the profile {traffic.profile} at once"
        if traffic.pattern != "stream" and (traffic.socket.mss or traffic.congestion_control):
            return f"{self.title} can't set the MSS or the congestion control of transactions"
        if traffic.transport == "icmp" and isinstance(traffic.rate, Bursts):
            return f"{self.title} can't send echo requests in bursts"
        if traffic.transport == "icmp" and traffic.payload < icmp.LEAST_DATA:
            return f"{self.title} can't send echo requests with less than {icmp.LEAST_DATA} bytes of data"
        return None

    async def measure(
        self, client: TrafficNode, server: TrafficNode, workload: Workload, window: WindowPlan
    ) -> Measurement:
        """Runs one trial; raises LoadError, or the node's own error, where it has no result."""
        offset = await clock_offset(client, server)
        for lead in (_LEAD_TOGETHER_NS,) if workload.together else _LEADS_NS:
            scene = Scene(client, server, workload, offset, await client.clock(), lead)
            window(lead / 1e9 + workload.warm_up_s, workload.measure_s)
            # Nothing was measured, so that it can be tried again.
            with suppress(StartPassedError):
                return await _measured(scene)
        raise LoadError("the two ends were not ready in time; is the machine busy with other work?")


async def _measured(scene: Scene) -> Measurement:
    workload = scene.workload
    if workload.pattern != "stream":
        return await transactions.measure(scene)
    module = {"tcp": tcp, "udp": udp, "icmp": icmp}[workload.transport]
    return await module.measure(scene)


DRIVER = Engine()
