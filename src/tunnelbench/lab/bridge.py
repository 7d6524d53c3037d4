"""Bridges (IEEE 802.1Q) on nodes that only pass frames on: with no address, and nothing to say themselves."""

from __future__ import annotations

from collections.abc import Iterable

from tunnelbench.lab import messages
from tunnelbench.lab.node import Node


async def silence(node: Node) -> None:
    """Takes IPv6 from all links of a node, also later ones: it would ask for members of multicast groups."""
    await node.configure(
        *(messages.SetSysctl(f"net/ipv6/conf/{name}/disable_ipv6", "1") for name in ("all", "default"))
    )


async def add_bridge(node: Node, name: str, ports: Iterable[str], mtu: int) -> None:
    """Adds a bridge of these links and raises all of them. Raises ProgramError where the node can't."""
    size = ("mtu", str(mtu))
    await node.run("ip", "link", "add", name, *size, "type", "bridge", "mcast_snooping", "0")
    for port in ports:
        await node.run("ip", "link", "set", port, "master", name, "up", *size)
    await node.run("ip", "link", "set", name, "up")
