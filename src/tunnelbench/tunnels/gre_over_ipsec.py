"""GRE over IPsec: GRE (RFC 2784) carries packets, ESP with manual keys (RFC 4303) protects GRE.

As GRE already puts packets between the gateways' addresses, ESP needs no IP header of its own: transport mode
is the usual way (RFC 4301). Tunnel mode is what routers do that know no other, and costs a second IP header.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead import layers as formats
from tunnelbench.tunnels import gre, xfrm
from tunnelbench.tunnels.base import (
    KEYS_BY_HAND,
    Established,
    Gateway,
    Needs,
    Option,
    ReadBack,
    Tunnel,
    Variant,
    options,
)
from tunnelbench.tunnels.ipsec_suites import ESP_SUITES, as_esp
from tunnelbench.tunnels.xfrm import Step, Way


class GreOverIpsec(Tunnel):
    """A GRE link of the kernel, whose packets the kernel's IPsec protects."""

    name = "gre-over-ipsec"
    title = "GRE over IPsec"
    suites = ESP_SUITES
    options = options(
        Option(
            "mode", ("transport", "tunnel"), "Whether GRE's packets keep their IP header, or get one more."
        )
    )
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def needs(self, variant: Variant) -> Needs:
        """GRE links, and ESP with the suite's transforms."""
        features = gre.TUNNEL.needs(variant).features | {_esp(variant).feature(variant.outer)}
        return Needs(features=features)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Protects GRE between the gateways before there is any."""
        chain, nodes = (_esp(variant),), (left.node, right.node)
        ways = [_way(end, request) for request, end in enumerate((left, right), 1)]
        await xfrm.protect(nodes, ways, chain, cleanup)
        link = await gre.TUNNEL.up(left, right, variant, cleanup)

        async def read_back() -> ReadBack:
            protected, linked = await xfrm.read_back(nodes), await link.read_back()
            suite = None if linked.suite is None else protected.suite
            return ReadBack(suite, f"{protected.text}\n{linked.text}", protected.facts)

        return Established(
            wire=frozenset({f"{variant.outer} esp"}),
            read_back=read_back,
            facts=xfrm.facts_of(chain),
            rekey_refusal=KEYS_BY_HAND,
        )

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """ESP around GRE; in tunnel mode around GRE's whole packet."""
        outermost, *link = gre.TUNNEL.encapsulation(variant).layers
        again = [outermost] if variant["mode"] == "tunnel" else []
        esp = formats.esp(variant.suite.encryption, variant.suite.integrity)
        return Encapsulation((outermost, esp, *again, *link))


TUNNEL = GreOverIpsec()


def _esp(variant: Variant) -> Step:
    return Step("esp", variant["mode"], as_esp(variant.suite).algorithms, for_both_families=False)


def _way(source: Gateway, request: int) -> Way:
    ends = f"src {source.outside} dst {source.peer_outside}"
    return Way(source.outside, source.peer_outside, (f"{ends} proto gre",), request, source.node.name)
