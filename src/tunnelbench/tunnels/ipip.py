"""IPIP: IPv4 within IPv4 (RFC 2003), without encryption."""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.features import link_kind
from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import (
    EVERYTHING,
    NO_SUITE,
    Established,
    Gateway,
    Needs,
    Tunnel,
    Variant,
    suites,
)
from tunnelbench.tunnels.point_to_point import link_up

IPV4_ALONE = frozenset(traffic for traffic in EVERYTHING if traffic[1] is Family.IPV4)


class Ipip(Tunnel):
    """An IPIP link of the kernel."""

    name = "ipip"
    title = "IPIP"
    suites = suites(NO_SUITE)
    carries = IPV4_ALONE

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def needs(self, variant: Variant) -> Needs:
        """IPIP links."""
        addresses = ("local", "127.0.0.1", "remote", "127.0.0.2")
        return Needs(features=frozenset({link_kind("IPIP", "ipip", *addresses)}))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Makes the link on both gateways."""
        return await link_up(left, right, "ipip", variant.suite, "ipv4 ipip", [Family.IPV4], cleanup)


TUNNEL = Ipip()
