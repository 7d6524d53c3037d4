"""IPsec with manual keys (RFC 4301): the fewest moving parts.

Security associations and policies are written straight into both kernels. Packets are protected by ESP
(RFC 4303), by AH (RFC 4302), which encrypts nothing, or by both: then ESP encrypts with the suite's cipher
and AH authenticates with its hash. In transport mode hosts protect their own packets, which keep their IP
header and thereby their IP version. Compression is IPComp (RFC 3173, RFC 2394); a payload that does not
shrink goes uncompressed. NAT traversal puts ESP into UDP (RFC 3948), whether there is a NAT or not; there is
none here.
"""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Inner, Layer
from tunnelbench.overhead import layers as formats
from tunnelbench.tunnels import xfrm
from tunnelbench.tunnels.base import (
    KEYS_BY_HAND,
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
from tunnelbench.tunnels.daemons import all_print, start_daemon
from tunnelbench.tunnels.ipsec_refusals import refusal_of_transport_mode
from tunnelbench.tunnels.ipsec_suites import ESP_SUITES, as_esp
from tunnelbench.tunnels.xfrm import Step, Way

_READY_SECONDS = 10.0
_UDP_RECEIVER = f"""\
import signal, socket
UDP_ENCAP, ESP_IN_UDP = 100, 2
receivers = [socket.socket(family, socket.SOCK_DGRAM) for family in (socket.AF_INET, socket.AF_INET6)]
receivers[1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
for receiver in receivers:
    receiver.setsockopt(socket.IPPROTO_UDP, UDP_ENCAP, ESP_IN_UDP)
    receiver.bind(("", {xfrm.UDP_PORT}))
print("receiving", flush=True)
signal.pause()
"""
"""The kernel takes ESP out of UDP only for sockets that ask for it, usually those of an IKE daemon."""


class IpsecManual(Tunnel):
    """ESP or AH between the gateways, keyed by hand."""

    name = "ipsec-manual"
    title = "IPsec, manual keys"
    suites = ESP_SUITES
    options = options(
        Option("protocol", ("esp", "ah", "ah+esp"), "What protects packets; AH encrypts nothing."),
        Option("mode", ("tunnel", "transport"), "Whether packets get a new IP header, or keep their own."),
        Option("compression", ("none", "deflate"), "Whether packets are compressed first (IPComp)."),
        Option("nat-traversal", ("no", "yes"), "Whether ESP travels in UDP datagrams, as through a NAT."),
    )
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """What protocols can't do with a suite, transport mode between gateways, and AH through a NAT."""
        suite = as_esp(variant.suite)
        has_hash = suite.hashed is not None and suite.hashed.kernel_name
        match variant["protocol"]:
            case "ah" if suite.encrypts:
                return "AH only authenticates (RFC 4302): it goes with the suites null-*"
            case "ah+esp" if not has_hash or not suite.encrypts:
                return "AH and ESP share a suite's work: it must have a cipher, for ESP, and a hash, for AH"
            case "ah" | "ah+esp" if variant["nat-traversal"] == "yes":
                return "AH authenticates the addresses that a NAT changes; only ESP travels in UDP (RFC 3948)"
            case _:
                pass
        return refusal_of_transport_mode(variant, place)

    def needs(self, variant: Variant) -> Needs:
        """IPsec with the suite's transforms."""
        families = set(Family) if variant["mode"] == "transport" else {variant.outer}
        features = {step.feature(family) for step in _chain(variant) for family in families}
        programs = {"python3"} if variant["nat-traversal"] == "yes" else set[str]()
        return Needs(programs=frozenset(programs), features=frozenset(features))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Writes the same associations and the matching policies into both kernels."""
        chain = _chain(variant)
        ends = (left, right)
        receivers: list[Program] = []
        if variant["nat-traversal"] == "yes":
            for end in ends:
                receivers.append(await start_daemon(end.node, cleanup, "python3", "-c", _UDP_RECEIVER))
            await all_print("receiving", receivers, _READY_SECONDS)
        ways = [*_ways(left, 1, variant), *_ways(right, 2, variant)]
        await xfrm.protect([end.node for end in ends], ways, chain, cleanup)
        for end in ends:
            via = {family: end.peer.outside.address(family) for family in Family}
            await end.route_to_peer(cleanup, via=via)

        async def read_back() -> ReadBack:
            return await xfrm.read_back([end.node for end in ends])

        return Established(
            wire=_wire(variant),
            read_back=read_back,
            programs=receivers,
            facts=xfrm.facts_of(chain),
            compresses=variant["compression"] != "none",
            rekey_refusal=KEYS_BY_HAND,
        )

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """Without IPComp's header, which only payload gets that shrinks."""
        is_tunnel = variant["mode"] == "tunnel"
        return Encapsulation(
            (formats.ip(variant.outer), *_protection(variant)),
            Inner.PACKET if is_tunnel else Inner.SEGMENT,
            compresses=variant["compression"] != "none",
        )


TUNNEL = IpsecManual()


def _chain(variant: Variant) -> tuple[Step, ...]:
    """What is done to each packet, the innermost first; only that makes a new IP header in tunnel mode."""
    algorithms = as_esp(variant.suite).algorithms
    parts = {
        "esp": [("esp", algorithms)],
        "ah": [("ah", {word: a for word, a in algorithms.items() if word == "auth-trunc"})],
        "ah+esp": [
            ("esp", {word: a for word, a in algorithms.items() if word == "enc"}),
            ("ah", {word: a for word, a in algorithms.items() if word == "auth-trunc"}),
        ],
    }[variant["protocol"]]
    if variant["compression"] != "none":
        parts.insert(0, ("comp", {}))
    in_udp = variant["nat-traversal"] == "yes"
    return tuple(
        Step(
            protocol,
            "transport" if position else variant["mode"],
            its_algorithms,
            for_both_families=variant["mode"] == "tunnel",
            in_udp=in_udp and protocol == "esp",
        )
        for position, (protocol, its_algorithms) in enumerate(parts)
    )


def _ways(source: Gateway, request: int, variant: Variant) -> list[Way]:
    """What one end sends: in tunnel mode packets of both families between the same addresses."""
    selectors = {
        family: f"src {source.site.inside.network(family)} dst {source.peer.inside.network(family)}"
        for family in Family
    }
    name = source.node.name
    if variant["mode"] == "tunnel":
        return [Way(source.outside, source.peer_outside, tuple(selectors.values()), request, name)]
    return [
        Way(
            source.site.inside.address(family), source.peer.inside.address(family), (selector,), request, name
        )
        for family, selector in selectors.items()
    ]


def _wire(variant: Variant) -> frozenset[str]:
    outermost = {"esp": "esp", "ah": "ah", "ah+esp": "ah"}[variant["protocol"]]
    if variant["nat-traversal"] == "yes":
        outermost = f"udp {xfrm.UDP_PORT}"
    families = [variant.outer] if variant["mode"] == "tunnel" else list(Family)
    return frozenset(f"{family} {outermost}" for family in families)


def _protection(variant: Variant) -> list[Layer]:
    suite = variant.suite
    layers: list[Layer] = []
    if variant["nat-traversal"] == "yes":
        layers.append(formats.udp())
    match variant["protocol"]:
        case "esp":
            layers.append(formats.esp(suite.encryption, suite.integrity))
        case "ah":
            layers.append(formats.ah(suite.integrity))
        case _:
            layers += [formats.ah(suite.integrity), formats.esp(suite.encryption, "none")]
    return layers
