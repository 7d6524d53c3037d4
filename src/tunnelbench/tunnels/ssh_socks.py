"""SSH as a SOCKS proxy: OpenSSH carries each TCP connection to where its client asks (`ssh -D`, RFC 1928).

A client connects to its own gateway and says in SOCKS 5 where to; the `ssh` there has the other gateway's
server connect to it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import Established, Gateway, Target, Variant
from tunnelbench.tunnels.openssh import connect
from tunnelbench.tunnels.ssh_stream import SshStream

PROXY_PORT = 1080


class SshSocks(SshStream):
    """A proxy on the left gateway that connects to whatever the right one reaches."""

    name = "ssh-socks"
    title = "SSH SOCKS proxy"
    is_proxy = True

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Logs in, and listens on the left gateway's side of the host in each family."""
        listening = left.site.gateway_inside or left.site.inside
        proxies = {family: Target(listening.address(family), PROXY_PORT) for family in Family}
        forwarding = [f"DynamicForward [{proxy.address}]:{proxy.port}" for proxy in proxies.values()]
        connection = await connect(left, right, variant, forwarding, cleanup)
        return connection.established(proxies=proxies)


TUNNEL = SshSocks()
