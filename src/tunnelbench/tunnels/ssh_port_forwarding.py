"""SSH port forwarding: OpenSSH carries TCP connections to single ports (`ssh -L`, RFC 4254 section 7)."""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import Established, Gateway, Target, Variant
from tunnelbench.tunnels.openssh import connect
from tunnelbench.tunnels.path import BACKGROUND_PORT, SERVICE_PORT
from tunnelbench.tunnels.ssh_stream import SshStream


class SshPortForwarding(SshStream):
    """Listeners on the left gateway that lead to the right site's host."""

    name = "ssh-port-forwarding"
    title = "SSH port forwarding"

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Logs in, and listens on the left gateway's side of the host for each port and family."""
        listening = left.site.gateway_inside or left.site.inside
        forwards = {
            (family, port): Target(listening.address(family), port)
            for family in Family
            for port in (SERVICE_PORT, BACKGROUND_PORT)
        }
        forwarding = [
            f"LocalForward [{target.address}]:{target.port} [{right.site.inside.address(family)}]:{port}"
            for (family, port), target in forwards.items()
        ]
        connection = await connect(left, right, variant, forwarding, cleanup)
        return connection.established(forwards=forwards)


TUNNEL = SshPortForwarding()
