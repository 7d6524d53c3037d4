"""The engine as a load tool: what it can do, and which module does it."""

from __future__ import annotations

from tunnelbench.load.abilities import Abilities
from tunnelbench.load.base import Measurement, Traffic, TrafficNode, WindowPlan, Workload
from tunnelbench.load.engine import icmp, tcp, transactions, udp
from tunnelbench.load.engine.clocks import clock_offset
from tunnelbench.load.engine.scene import LEAD_NS, Scene
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
        scene = Scene(client, server, workload, await clock_offset(client, server), await client.clock())
        window(LEAD_NS / 1e9 + workload.warm_up_s, workload.measure_s)
        if workload.pattern != "stream":
            return await transactions.measure(scene)
        module = {"tcp": tcp, "udp": udp, "icmp": icmp}[workload.transport]
        return await module.measure(scene)


DRIVER = Engine()
