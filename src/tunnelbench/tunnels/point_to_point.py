"""What interfaces that join two gateways have in common: links of the kernel, and the devices of programs."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack

from tunnelbench.lab import messages
from tunnelbench.lab.topology import Addresses, Family
from tunnelbench.tunnels.base import Gateway

INTERFACE = "tunnel0"

INNER_ADDRESSES = (
    Addresses.parse("10.255.0.1/30", "fd00:ff::1/64"),
    Addresses.parse("10.255.0.2/30", "fd00:ff::2/64"),
)
"""The addresses of both ends of a tunnel that has some of its own, the left one's first."""


async def join(
    left: Gateway,
    right: Gateway,
    interface: str,
    cleanup: AsyncExitStack,
    *,
    ethernet: bool,
    right_interface: str | None = None,
) -> None:
    """Sets the devices of a program up on both gateways, and routes each site over them.

    Over Ethernet the next hop is the other end's address, over IP the device alone says where packets go.
    `right_interface` is for devices that are not called alike.
    """
    ends = (
        (left, interface, *INNER_ADDRESSES),
        (right, right_interface or interface, *reversed(INNER_ADDRESSES)),
    )
    for end, interface, own, peer in ends:
        await end.node.configure(
            messages.SetLink(interface, up=True),
            *(messages.AddAddress(interface, str(own.interface(family))) for family in Family),
        )
        via = {family: peer.address(family) for family in Family} if ethernet else None
        await end.route_to_peer(cleanup, interface=interface, via=via)


async def wire_of(end: Gateway) -> str:
    """The interface by which a gateway reaches the other one."""
    shown = await end.node.run("ip", "-json", "route", "get", str(end.peer_outside))
    return json.loads(shown.text)[0]["dev"]
