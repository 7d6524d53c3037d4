"""SSH as a SOCKS proxy: OpenSSH carries each TCP connection to where its client asks (`ssh -D`, RFC 1928).

A client connects to its own gateway and says in SOCKS 5 where to; the `ssh` there has the other gateway's
server connect to it. So TCP ends on both gateways, and bytes of a stream cross the wire, not packets.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Place,
    Target,
    Tunnel,
    Variant,
    options,
    suites,
)
from tunnelbench.tunnels.openssh import connect, ssh_needs, wire_protocols
from tunnelbench.tunnels.ssh_stream import TCP_ALONE, byte_stream
from tunnelbench.tunnels.ssh_suites import COMPRESSION, MAC_ORDER, all_suites, impossible

PROXY_PORT = 1080


class SshSocks(Tunnel):
    """A proxy on the left gateway that connects to whatever the right one reaches."""

    name = "ssh-socks"
    title = "SSH SOCKS proxy"
    suites = suites(*all_suites())
    options = options(COMPRESSION, MAC_ORDER)
    carries = TCP_ALONE
    is_proxy = True
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """A MAC's order without a MAC."""
        return impossible(variant)

    def needs(self, variant: Variant) -> Needs:
        """A client and a server with the suite."""
        return ssh_needs(variant)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Logs in, and listens on the left gateway's side of the host in each family."""
        listening = left.site.gateway_inside or left.site.inside
        proxies = {family: Target(listening.address(family), PROXY_PORT) for family in Family}
        forwarding = [f"DynamicForward [{proxy.address}]:{proxy.port}" for proxy in proxies.values()]
        connection = await connect(left, right, variant, forwarding, cleanup)
        return Established(
            wire=wire_protocols(left),
            read_back=connection.read_back,
            programs=connection.programs,
            proxies=proxies,
            facts=connection.facts,
            compresses=connection.compresses,
            rekey=connection.rekey,
            handshake_seconds=connection.handshake_seconds,
        )

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """What a gateway reads at once is the data of one message of a channel, in a TCP stream."""
        return byte_stream(variant)


TUNNEL = SshSocks()
