"""VXLAN: Ethernet within UDP (RFC 7348), without encryption.

The gateways are neighbours on the virtual Ethernet and route between their sites over it, so what neighbours
say to each other (ARP, neighbour discovery) goes through the tunnel, too. The kernel takes what VXLAN adds
off the interface's MTU: 50 bytes over IPv4, 70 over IPv6.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab import messages
from tunnelbench.lab.features import link_kind
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Inner
from tunnelbench.overhead import layers as formats
from tunnelbench.tunnels.base import (
    NO_SUITE,
    Established,
    Gateway,
    Needs,
    ReadBack,
    Tunnel,
    Variant,
    suites,
)
from tunnelbench.tunnels.kernel_link import read_link
from tunnelbench.tunnels.point_to_point import INTERFACE, join, wire_of

PORT = 4789
_NETWORK = ("id", "1", "dstport", str(PORT))


class Vxlan(Tunnel):
    """A VXLAN link of the kernel between two gateways."""

    name = "vxlan"
    title = "VXLAN"
    suites = suites(NO_SUITE)
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def needs(self, variant: Variant) -> Needs:
        """VXLAN links."""
        return Needs(features=frozenset({link_kind("VXLAN", "vxlan", *_NETWORK)}))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Makes the link on both gateways, on top of the wire, so that the kernel knows its MTU."""
        for end in (left, right):
            await end.node.run(
                *("ip", "link", "add", INTERFACE, "type", "vxlan", *_NETWORK, "dev", await wire_of(end)),
                *("local", str(end.outside), "remote", str(end.peer_outside), "ttl", "64"),
            )
            cleanup.push_async_callback(end.node.configure, messages.RemoveLink(INTERFACE))
        await join(left, right, INTERFACE, cleanup, ethernet=True)

        async def read_back() -> ReadBack:
            shown = [await end.node.run("ip", "-d", "link", "show", INTERFACE) for end in (left, right)]
            return ReadBack.agreed(read_link(one.text, "vxlan", NO_SUITE.name) for one in shown)

        return Established(wire=frozenset({f"{variant.outer} udp {PORT}"}), read_back=read_back)

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """UDP and VXLAN's header around Ethernet frames."""
        return Encapsulation((formats.ip(variant.outer), formats.udp(), formats.vxlan()), Inner.FRAME)


TUNNEL = Vxlan()
