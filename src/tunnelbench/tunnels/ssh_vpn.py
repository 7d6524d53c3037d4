"""SSH VPN: OpenSSH carries the packets of a tun or tap device (`ssh -w`, ssh(1)), TCP within TCP."""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.features import TUN, Feature
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Inner, layers
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Option,
    Place,
    Tunnel,
    Variant,
    options,
    suites,
)
from tunnelbench.tunnels.openssh import connect, packet_layers, ssh_needs
from tunnelbench.tunnels.point_to_point import join
from tunnelbench.tunnels.ssh_suites import COMPRESSION, MAC_ORDER, all_suites, impossible, suite_of

_WITHOUT_DEVICES = frozenset({"bullseye", "bookworm"})
"""Releases whose AsyncSSH makes no tun devices."""
_ASYNCSSH_WITH_DEVICES = Feature(
    "AsyncSSH 2.16 or newer, which makes tun and tap devices",
    ("python3", "-c", "import asyncssh; asyncssh.SSHServer.tun_requested"),
    user_space=True,
)


class SshVpn(Tunnel):
    """A tun or tap device on both gateways, joined by an SSH connection."""

    name = "ssh-vpn"
    title = "SSH VPN"
    suites = suites(*all_suites())
    options = options(
        COMPRESSION,
        MAC_ORDER,
        Option("device", ("tun", "tap"), "Whether IP packets or Ethernet frames are carried."),
    )
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """A MAC's order without a MAC; legacy ciphers where AsyncSSH makes no devices."""
        if suite_of(variant).is_legacy and place.release in _WITHOUT_DEVICES:
            return (
                f"OpenSSH's server has no {variant.suite.encryption} any more, and AsyncSSH, which has it, "
                f"makes no tun devices in {place.release}; in trixie it does"
            )
        return impossible(variant)

    def needs(self, variant: Variant) -> Needs:
        """A client and a server with the suite, and TUN devices."""
        legacy = [_ASYNCSSH_WITH_DEVICES] if suite_of(variant).is_legacy else []
        return ssh_needs(variant, TUN, *legacy)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Logs in, which makes the devices, and gives them addresses and routes."""
        is_tap = variant["device"] == "tap"
        forwarding = (f"Tunnel {'ethernet' if is_tap else 'point-to-point'}", "TunnelDevice 0:0")
        connection = await connect(left, right, variant, forwarding, cleanup, makes_device=True)
        await join(left, right, "tap0" if is_tap else "tun0", cleanup, ethernet=is_tap)
        return connection.established()

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """Each packet or frame is the data of one message of a channel, in a TCP stream."""
        is_tap = variant["device"] == "tap"
        return Encapsulation(
            layers=(*packet_layers(variant), *([] if is_tap else [layers.ssh_tunnel()])),
            inner=Inner.FRAME if is_tap else Inner.PACKET,
            inner_mtu=1500,
            compresses=variant[COMPRESSION.name] != "none",
        )


TUNNEL = SshVpn()
