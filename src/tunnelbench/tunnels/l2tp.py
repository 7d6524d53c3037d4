"""L2TP: PPP in UDP datagrams (RFC 2661), by xl2tpd and pppd.

L2TP itself encrypts nothing; its suites are those of PPP. Once a session is there, packets stay in the kernel
(`data-plane=kernel`), or go through xl2tpd and a pseudo-terminal. There is no authentication of the L2TP
tunnel itself, only that of PPP. The interface has an MTU of 1400 bytes, four less with MPPE.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead.layers import ipv4
from tunnelbench.tunnels import ppp_links, pppd, xl2tpd
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Place,
    ReadBack,
    Tunnel,
    Variant,
    options,
)
from tunnelbench.tunnels.ppp_links import Link


class L2tp(Tunnel):
    """An L2TP session between the gateways, with PPP in it."""

    name = "l2tp"
    title = "L2TP"
    suites = pppd.MPPE_SUITES
    options = options(pppd.AUTHENTICATION, pppd.COMPRESSION, xl2tpd.DATA_PLANE)
    topologies = frozenset({"site-to-site", "host-to-host", "remote-access"})

    def in_kernel(self, variant: Variant) -> bool:
        """As its option says."""
        return variant["data-plane"] == "kernel"

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """What PPP can't do."""
        return _negotiation(variant).refusal

    def needs(self, variant: Variant) -> Needs:
        """xl2tpd, pppd, and PPP in the kernel."""
        return xl2tpd.needs(_negotiation(variant), variant["data-plane"])

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts xl2tpd on both gateways, then has the left one dial."""
        return await _dial([ppp_links.between_sites(left, right)], variant, cleanup)

    async def serve(
        self, server: Gateway, clients: Sequence[Gateway], variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts xl2tpd everywhere, then has all clients dial, who are given their inside addresses."""
        return await _dial(ppp_links.of_clients(server, clients), variant, cleanup)

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """UDP, L2TP without optional fields, PPP with address and control."""
        negotiation = _negotiation(variant)
        return Encapsulation(
            (ipv4(), *xl2tpd.layers(negotiation)),
            inner_mtu=negotiation.mtu,
            compresses=negotiation.compression != "none",
        )


TUNNEL = L2tp()


async def _dial(links: Sequence[Link], variant: Variant, cleanup: AsyncExitStack) -> Established:
    negotiation = _negotiation(variant)
    sessions = await xl2tpd.dial(links, negotiation, variant["data-plane"], cleanup)

    async def read_back() -> ReadBack:
        return sessions.read_back()

    return Established(
        wire=frozenset({f"ipv4 udp {xl2tpd.PORT}"}),
        read_back=read_back,
        programs=sessions.programs,
        facts={**negotiation.facts, "data-plane": variant["data-plane"]},
        compresses=negotiation.compression != "none",
        rekey_refusal=negotiation.rekey_refusal,
        handshake_seconds=sessions.handshake_seconds,
    )


def _negotiation(variant: Variant) -> pppd.Negotiation:
    return pppd.Negotiation(variant["authentication"], variant["compression"], variant.suite.name)
