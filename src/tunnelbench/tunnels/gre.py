"""GRE: generic routing encapsulation in IPv4 (RFC 2784), without encryption."""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.features import link_kind
from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import NO_SUITE, Established, Gateway, Needs, Tunnel, Variant, suites
from tunnelbench.tunnels.point_to_point import link_up


class Gre(Tunnel):
    """A GRE link of the kernel."""

    name = "gre"
    title = "GRE"
    suites = suites(NO_SUITE)

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def needs(self, variant: Variant) -> Needs:
        """GRE links."""
        addresses = ("local", "127.0.0.1", "remote", "127.0.0.2")
        return Needs(features=frozenset({link_kind("GRE", "gre", *addresses)}))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Makes the link on both gateways."""
        return await link_up(left, right, "gre", variant.suite, "ipv4 gre", list(Family), cleanup)


TUNNEL = Gre()
