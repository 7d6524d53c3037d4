"""What links between two gateways have in common: IPIP, GRE and their kin, and the devices of programs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from tunnelbench.lab import messages
from tunnelbench.lab.topology import Addresses, Family
from tunnelbench.tunnels.base import Established, Gateway, ReadBack, Suite

INTERFACE = "tunnel0"

INNER_ADDRESSES = (
    Addresses.parse("10.255.0.1/30", "fd00:ff::1/64"),
    Addresses.parse("10.255.0.2/30", "fd00:ff::2/64"),
)
"""The addresses of both ends of a tunnel that has some of its own, the left one's first."""


async def join(
    left: Gateway, right: Gateway, interface: str, cleanup: AsyncExitStack, *, ethernet: bool
) -> None:
    """Sets the devices of a program up on both gateways, and routes each site over them.

    Over Ethernet the next hop is the other end's address, over IP the device alone says where packets go.
    """
    for end, own, peer in ((left, *INNER_ADDRESSES), (right, *reversed(INNER_ADDRESSES))):
        await end.node.configure(
            messages.SetLink(interface, up=True),
            *(messages.AddAddress(interface, str(own.interface(family))) for family in Family),
        )
        via = {family: peer.address(family) for family in Family} if ethernet else None
        await end.route_to_peer(cleanup, interface=interface, via=via)


async def link_up(
    left: Gateway,
    right: Gateway,
    kind: str,
    suite: Suite,
    wire: str,
    families: Sequence[Family],
    cleanup: AsyncExitStack,
) -> Established:
    """Makes a link of a kind (ip-link(8)) between both gateways and routes each site over it.

    `wire` is the protocol that carries it, as captures name it; `families` are what is routed over it.
    """
    for end in (left, right):
        own, peer = (site.outside.ipv4.ip for site in (end.site, end.peer))
        await end.node.run(
            *("ip", "link", "add", INTERFACE, "type", kind, "local", str(own), "remote", str(peer)),
            *("ttl", "64"),
        )
        cleanup.push_async_callback(end.node.configure, messages.RemoveLink(INTERFACE))
        await end.node.configure(messages.SetLink(INTERFACE, up=True))
        await end.route_to_peer(cleanup, interface=INTERFACE, families=families)

    async def read_back() -> ReadBack:
        shown = [await end.node.run("ip", "-d", "link", "show", INTERFACE) for end in (left, right)]
        text = "\n".join(completed.text.strip() for completed in shown)
        right_kind = all(f" {kind} " in completed.text for completed in shown)
        return ReadBack(suite.name if right_kind else None, text)

    return Established(
        wire=frozenset({wire}),
        read_back=read_back,
    )
