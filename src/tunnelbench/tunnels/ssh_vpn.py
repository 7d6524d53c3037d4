"""SSH VPN: OpenSSH carries the packets of a tun device (`ssh -w`, ssh(1)), TCP within TCP."""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab import messages
from tunnelbench.lab.features import TUN
from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import Established, Gateway, Needs, Tunnel, Variant, suites
from tunnelbench.tunnels.openssh import WIRE, all_suites, connect, ssh_needs
from tunnelbench.tunnels.point_to_point import INNER_ADDRESSES

INTERFACE = "tun0"


class SshVpn(Tunnel):
    """A tun device on both gateways, joined by an SSH connection."""

    name = "ssh-vpn"
    title = "SSH VPN"
    suites = suites(*all_suites())

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def needs(self, variant: Variant) -> Needs:
        """OpenSSH with the suite, and TUN devices."""
        return ssh_needs(variant.suite, TUN)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Logs in, which makes the devices, and gives them addresses and routes."""
        options = ("Tunnel point-to-point", "TunnelDevice 0:0")
        connection = await connect(left, right, variant.suite, options, "tunnel forward established", cleanup)
        for end, own in zip((left, right), INNER_ADDRESSES, strict=True):
            await end.node.configure(
                messages.SetLink(INTERFACE, up=True),
                *(messages.AddAddress(INTERFACE, str(own.interface(family))) for family in Family),
            )
            await end.route_to_peer(cleanup, interface=INTERFACE)
        return Established(
            wire=WIRE,
            read_back=connection.read_back,
            programs=connection.programs,
        )


TUNNEL = SshVpn()
