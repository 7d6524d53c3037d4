"""WireGuard by the kernel, which encrypts on its way through all processors at hand.

Debian's kernels for kernel nodes lack it; those of images built with `--kernel source` have it.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab import messages
from tunnelbench.lab.features import link_kind
from tunnelbench.tunnels.base import Gateway, Needs, Variant
from tunnelbench.tunnels.wireguard_device import INTERFACE, WireguardTunnel


class Wireguard(WireguardTunnel):
    """A WireGuard link of the kernel on both gateways."""

    name = "wireguard"
    title = "WireGuard"

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def needs(self, variant: Variant) -> Needs:
        """WireGuard links, and the tool that configures them."""
        links = link_kind("WireGuard", "wireguard", from_source=True)
        return Needs(programs=frozenset({"wg"}), features=frozenset({links}))

    async def create(self, end: Gateway, cleanup: AsyncExitStack) -> None:
        """Makes the link."""
        await end.node.run("ip", "link", "add", INTERFACE, "type", "wireguard")
        cleanup.push_async_callback(end.node.configure, messages.RemoveLink(INTERFACE))


TUNNEL = Wireguard()
