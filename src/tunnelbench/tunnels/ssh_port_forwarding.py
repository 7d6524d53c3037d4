"""SSH port forwarding: OpenSSH carries TCP connections to single ports (`ssh -L`, RFC 4254 section 7).

A client connects to its own gateway, whose `ssh` asks the other gateway's server to connect to the host. So
TCP ends on both gateways, and what crosses the wire are the bytes of a stream, not packets.
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
from tunnelbench.tunnels.path import SERVICE_PORT
from tunnelbench.tunnels.ssh_stream import TCP_ALONE, byte_stream
from tunnelbench.tunnels.ssh_suites import COMPRESSION, MAC_ORDER, all_suites, impossible


class SshPortForwarding(Tunnel):
    """Listeners on the left gateway that lead to the right site's host."""

    name = "ssh-port-forwarding"
    title = "SSH port forwarding"
    suites = suites(*all_suites())
    options = options(COMPRESSION, MAC_ORDER)
    carries = TCP_ALONE
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
        """Logs in, and listens on the left gateway's side of the host for each port and family."""
        listening = left.site.gateway_inside or left.site.inside
        forwards = {
            (family, SERVICE_PORT): Target(listening.address(family), SERVICE_PORT) for family in Family
        }
        forwarding = [
            f"LocalForward [{target.address}]:{target.port} [{right.site.inside.address(family)}]:{port}"
            for (family, port), target in forwards.items()
        ]
        connection = await connect(left, right, variant, forwarding, cleanup)
        return Established(
            wire=wire_protocols(left),
            read_back=connection.read_back,
            programs=connection.programs,
            forwards=forwards,
            facts=connection.facts,
            compresses=connection.compresses,
            rekey=connection.rekey,
            handshake_seconds=connection.handshake_seconds,
        )

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """What a gateway reads at once is the data of one message of a channel, in a TCP stream."""
        return byte_stream(variant)


TUNNEL = SshPortForwarding()
