"""Plain IP: the same network with no VPN, to which every result is related."""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation
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

PAYLOAD_PROTOCOLS = frozenset(
    {f"{family} {transport}" for family in Family for transport in ("tcp", "udp")}
    | {"ipv4 icmp", "ipv6 icmpv6"}
)
"""What hosts send, seen on the wire as it is."""


class PlainIp(Tunnel):
    """Gateways that do nothing but route."""

    name = "open"
    title = "plain IP"
    suites = suites(NO_SUITE)

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def needs(self, variant: Variant) -> Needs:
        """Nothing but a kernel that forwards."""
        return Needs()

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Routes each site's network to the other gateway."""
        for end in (left, right):
            via = {family: end.peer.outside.address(family) for family in Family}
            await end.route_to_peer(cleanup, via=via)

        async def read_back() -> ReadBack:
            routes = await left.node.run("ip", "route", "show", str(right.site.inside.ipv4.network))
            direct = f"via {right.site.outside.ipv4.ip}" in routes.text
            return ReadBack(NO_SUITE.name if direct else None, routes.text.strip())

        return Established(wire=PAYLOAD_PROTOCOLS, read_back=read_back)

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """None at all."""
        return Encapsulation()


TUNNEL = PlainIp()
