"""SSH port forwarding: OpenSSH carries TCP connections to single ports (`ssh -L`, RFC 4254 section 7).

A client connects to its own gateway, whose `ssh` asks the other gateway's `sshd` to connect to the server. So
TCP ends on both gateways, and what crosses the wire are the bytes of a stream, not packets.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Target,
    Traffic,
    Tunnel,
    Variant,
    suites,
)
from tunnelbench.tunnels.openssh import WIRE, all_suites, connect, ssh_needs
from tunnelbench.tunnels.path import SERVICE_PORT

TCP_ALONE: frozenset[Traffic] = frozenset(("tcp", family) for family in Family)


class SshPortForwarding(Tunnel):
    """Listeners on the left gateway that lead to the right site's host."""

    name = "ssh-port-forwarding"
    title = "SSH port forwarding"
    suites = suites(*all_suites())
    carries = TCP_ALONE

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def needs(self, variant: Variant) -> Needs:
        """OpenSSH with the suite."""
        return ssh_needs(variant.suite)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Logs in, and listens on the left gateway's side of the host for each port and family."""
        listening = left.site.gateway_inside or left.site.inside
        forwards = {
            (family, SERVICE_PORT): Target(listening.address(family), SERVICE_PORT) for family in Family
        }
        options = [
            f"LocalForward [{target.address}]:{target.port} [{right.site.inside.address(family)}]:{port}"
            for (family, port), target in forwards.items()
        ]
        connection = await connect(
            left, right, variant.suite, options, "Entering interactive session", cleanup
        )
        return Established(
            wire=WIRE, read_back=connection.read_back, programs=connection.programs, forwards=forwards
        )


TUNNEL = SshPortForwarding()
