"""Plain IP: the same network with no VPN, to which every result is related."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from tunnelbench.lab import messages
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
    topologies = frozenset({"site-to-site", "host-to-host", "remote-access"})

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

        return _established(left)

    async def serve(
        self, server: Gateway, clients: Sequence[Gateway], variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Gives each client its inside address, and routes it there and to the server's site."""
        for client in clients:
            for family in Family:
                inside, outside = client.site.inside.address(family), client.site.outside.address(family)
                own = f"{inside}/{inside.max_prefixlen}"
                await client.node.configure(messages.AddAddress("lo", own))
                cleanup.push_async_callback(client.node.run, "ip", "address", "del", own, "dev", "lo")
                await server.node.configure(messages.AddRoute(own, gateway=str(outside)))
                cleanup.push_async_callback(server.node.run, "ip", "route", "del", own)
            via = {family: server.site.outside.address(family) for family in Family}
            await client.route_to_peer(cleanup, via=via)
        return _established(clients[0])

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """None at all."""
        return Encapsulation()


def _established(client: Gateway) -> Established:
    async def read_back() -> ReadBack:
        routes = await client.node.run("ip", "route", "show", str(client.peer.inside.ipv4.network))
        direct = f"via {client.peer.outside.ipv4.ip}" in routes.text
        return ReadBack(NO_SUITE.name if direct else None, routes.text.strip())

    return Established(wire=PAYLOAD_PROTOCOLS, read_back=read_back)


TUNNEL = PlainIp()
