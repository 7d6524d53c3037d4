"""L2TP over IPsec (RFC 3193): PPP in UDP datagrams that ESP in transport mode protects.

strongSwan agrees on keys, by IKEv1 with a preshared key unless told otherwise, as the clients of operating
systems do; then xl2tpd dials. IPsec protects UDP port 1701 between the gateways, and nothing else. The suites
are those of IPsec; PPP itself encrypts nothing here, though it can compress and still asks for a password.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from functools import partial

from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Oversize
from tunnelbench.overhead.layers import esp, ipv4, udp
from tunnelbench.tunnels import ppp_links, pppd, strongswan, strongswan_read_back, xfrm, xl2tpd
from tunnelbench.tunnels import strongswan_remote_access as remote_access
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Option,
    Place,
    ReadBack,
    Tunnel,
    Variant,
    options,
)
from tunnelbench.tunnels.ipsec_refusals import refusal_of_ike_version
from tunnelbench.tunnels.ipsec_suites import as_esp
from tunnelbench.tunnels.ppp_links import Link
from tunnelbench.tunnels.strongswan_configuration import Child, Connection, Protection
from tunnelbench.tunnels.strongswan_daemon import PROGRAMS, Protected, protect
from tunnelbench.tunnels.strongswan_remote_access import Served

_IKE = strongswan.TUNNEL.options
_L2TP = Child("l2tp", lambda _site: f"dynamic[udp/{xl2tpd.PORT}]")


class L2tpOverIpsec(Tunnel):
    """An L2TP session between the gateways that IPsec protects."""

    name = "l2tp-over-ipsec"
    title = "L2TP over IPsec"
    suites = strongswan.TUNNEL.suites
    options = options(
        Option("version", ("ikev1", "ikev2"), "IKE's version."),
        _IKE["authentication"],
        _IKE["group"],
        _IKE["nat-traversal"],
        Option("ppp-authentication", pppd.AUTHENTICATION.levels, pppd.AUTHENTICATION.meaning),
        pppd.COMPRESSION,
        xl2tpd.DATA_PLANE,
    )
    topologies = frozenset({"site-to-site", "host-to-host", "remote-access"})

    def in_kernel(self, variant: Variant) -> bool:
        """As its option says."""
        return variant["data-plane"] == "kernel"

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """What IKEv1 does not know."""
        return refusal_of_ike_version(variant)

    def needs(self, variant: Variant) -> Needs:
        """strongSwan, xl2tpd, pppd, and a kernel with the suite and PPP."""
        inner = xl2tpd.needs(_negotiation(variant), variant["data-plane"])
        return Needs(inner.programs | PROGRAMS, inner.features | {_step(variant).feature(Family.IPV4)})

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Has strongSwan protect L2TP, then the left gateway dial."""
        protected = await protect(left, right, _protection(variant), cleanup)
        read_ipsec = partial(strongswan_read_back.read_back, protected)
        return await _dial([ppp_links.between_sites(left, right)], protected, read_ipsec, variant, cleanup)

    async def serve(
        self, server: Gateway, clients: Sequence[Gateway], variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Has strongSwan protect L2TP with each client, then all dial and are given their addresses."""
        served = await remote_access.serve(
            server, clients, _protection(variant), cleanup, gives_addresses=False
        )
        links = ppp_links.of_clients(server, clients)
        return await _dial(links, served, served.read_back, variant, cleanup)

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """ESP around UDP, L2TP and PPP; the kernel fragments what gets too large in the end."""
        suite, negotiation = as_esp(variant.suite), _negotiation(variant)
        in_udp = (udp(),) if variant["nat-traversal"] == "yes" else ()
        protection = esp(suite.encryption, suite.integrity, suite.icv_bits // 8)
        return Encapsulation(
            (ipv4(), *in_udp, protection, *xl2tpd.layers(negotiation)),
            inner_mtu=negotiation.mtu,
            oversize=Oversize.FRAGMENTED_AFTER,
            compresses=negotiation.compression != "none",
        )


TUNNEL = L2tpOverIpsec()


async def _dial(
    links: Sequence[Link],
    protected: Protected | Served,
    read_ipsec: Callable[[], Awaitable[ReadBack]],
    variant: Variant,
    cleanup: AsyncExitStack,
) -> Established:
    negotiation, ike_seconds = _negotiation(variant), protected.handshake_seconds
    sessions = await xl2tpd.dial(links, negotiation, variant["data-plane"], cleanup)

    async def read_back() -> ReadBack:
        return _both(await read_ipsec(), sessions.read_back())

    return Established(
        wire=frozenset({"ipv4 udp 4500" if variant["nat-traversal"] == "yes" else "ipv4 esp"}),
        read_back=read_back,
        programs=(*protected.programs, *sessions.programs),
        facts={
            "IKE version": variant["version"],
            "DH group": variant["group"],
            "protocol": "esp",
            "mode": "transport",
            "NAT traversal": variant["nat-traversal"],
            **_facts(negotiation.facts),
            "data-plane": variant["data-plane"],
        },
        compresses=negotiation.compression != "none",
        rekey=protected.rekey,
        handshake_seconds=None if ike_seconds is None else ike_seconds + sessions.handshake_seconds,
    )


def _negotiation(variant: Variant) -> pppd.Negotiation:
    return pppd.Negotiation(variant["ppp-authentication"], variant["compression"])


def _step(variant: Variant) -> xfrm.Step:
    in_udp = variant["nat-traversal"] == "yes"
    return xfrm.Step("esp", "transport", as_esp(variant.suite).algorithms, False, in_udp=in_udp)


def _protection(variant: Variant) -> Protection:
    transforms = as_esp(variant.suite).strongswan
    assert transforms is not None
    return Protection(
        transforms=transforms,
        connections=(Connection("gateways", (_L2TP,)),),
        mode="transport",
        version=variant["version"],
        authentication=variant["authentication"],
        group=variant["group"],
        in_udp=variant["nat-traversal"] == "yes",
    )


def _both(ipsec: ReadBack, session: ReadBack) -> ReadBack:
    """What IPsec says of the suite, and both of the rest; no suite where PPP is not as it should be."""
    return ReadBack(
        ipsec.suite if session.suite == "none" else None,
        f"{ipsec.text}\n{session.text}",
        {**ipsec.facts, **_facts(session.facts)},
    )


def _facts(session_facts: Mapping[str, str]) -> Mapping[str, str]:
    """PPP's, by names that are not IKE's."""
    return {
        "ppp-authentication" if name == "authentication" else name: value
        for name, value in session_facts.items()
    }
