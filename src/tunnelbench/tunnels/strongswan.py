"""IPsec by strongSwan: keys from IKE, packets encrypted by the kernel or by strongSwan itself.

IKE's own messages are protected with AES-128-CBC and HMAC-SHA-256, whatever the suite. The first keys of the
packets come from the exchange that begins the connection; new ones are derived without another Diffie-Hellman
exchange. All addresses of both sites are in one pair of associations; in IKEv1, which can't have that, each
IP version has a pair of its own. In transport mode hosts protect their own packets, which keep their IP
version: IKE goes between the hosts' inside addresses, once over each.

strongSwan's data plane in user space is its plugin kernel-libipsec: ESP in tunnel mode, always in UDP, on a
TUN device with an MTU of 1400. It queues packets without bound.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from functools import partial

from tunnelbench.lab import messages
from tunnelbench.lab.features import TUN, Feature, link_kind
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Inner
from tunnelbench.overhead import layers as formats
from tunnelbench.tunnels import strongswan_remote_access as remote_access
from tunnelbench.tunnels import xfrm
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Option,
    Place,
    ReadBack,
    Traffic,
    Tunnel,
    Variant,
    options,
    suites,
)
from tunnelbench.tunnels.ipsec_refusals import refusal_of_ike_version, refusal_of_transport_mode
from tunnelbench.tunnels.ipsec_suites import ESP_SUITES, as_esp
from tunnelbench.tunnels.strongswan_configuration import BETWEEN_GATEWAYS, Child, Connection, Protection
from tunnelbench.tunnels.strongswan_daemon import PROGRAMS, Protected, protect
from tunnelbench.tunnels.strongswan_read_back import read_back
from tunnelbench.tunnels.strongswan_remote_access import Served

INTERFACE = "ipsec0"
"""Where packets go in: the device of kernel-libipsec, or that of a steering that has one."""
MARK = 42
"""By which the kernel tells the packets of that interface."""
LIBIPSEC_MTU = 1400
"""The MTU of the device of kernel-libipsec."""

_OPTIONS = options(
    Option("version", ("ikev2", "ikev1"), "IKE's version."),
    Option("authentication", ("psk", "certificate"), "What the gateways prove with who they are."),
    Option(
        "group",
        (
            *("modp2048", "modp768", "modp1024", "modp1536", "modp3072", "modp4096"),
            *("ecp256", "ecp384", "ecp521", "curve25519"),
        ),
        "The Diffie-Hellman group of the key exchange.",
    ),
    Option("protocol", ("esp", "ah"), "What protects packets; AH encrypts nothing."),
    Option("mode", ("tunnel", "transport"), "Whether packets are wrapped whole, or only their payload."),
    Option("data-plane", ("kernel", "user-space"), "Who encrypts packets: the kernel, or strongSwan itself."),
    Option("steering", ("policy", "xfrm-interface", "vti"), "How the kernel knows which packets to encrypt."),
    Option("compression", ("none", "deflate"), "Whether IPComp compresses packets first."),
    Option("nat-traversal", ("no", "yes"), "Whether ESP travels in UDP as if there were a NAT."),
)


class StrongSwan(Tunnel):
    """IPsec between the gateways, keyed by charon."""

    name = "strongswan"
    title = "IPsec, strongSwan"
    suites = suites(*(suite for suite in ESP_SUITES.values() if as_esp(suite).strongswan))
    options = _OPTIONS
    outer_families = frozenset(Family)
    topologies = frozenset({"site-to-site", "host-to-host", "remote-access"})

    def in_kernel(self, variant: Variant) -> bool:
        """As its option says."""
        return variant["data-plane"] == "kernel"

    def carried(self, variant: Variant) -> frozenset[Traffic]:
        """With IPComp, strongSwan makes associations that take the IP version between the gateways alone."""
        if variant["compression"] == "none" or variant["mode"] == "transport":
            return self.carries
        return frozenset(traffic for traffic in self.carries if traffic[1] is variant.outer)

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """What IPsec or kernel-libipsec can't do."""
        if refusal := refusal_of_transport_mode(variant, place) or refusal_of_ike_version(variant):
            return refusal
        if place.topology == "remote-access" and variant["version"] == "ikev1":
            return "clients get their addresses by IKEv2; for IKEv1 that never became a standard"
        if place.topology == "remote-access" and variant["steering"] != "policy":
            return f"{variant['steering']} is made here for two gateways, not for a server of many clients"
        if variant["mode"] == "transport" and variant["steering"] == "vti":
            return "Linux's VTI sends through associations in tunnel mode alone: take mode=tunnel"
        if variant["protocol"] == "ah" and variant.suite.encrypts:
            return "AH encrypts nothing: ask for a suite without encryption, such as null-sha1"
        if variant["protocol"] == "ah" and variant["nat-traversal"] == "yes":
            return "AH protects the addresses of packets, so it can't pass a NAT"
        if variant["data-plane"] == "user-space":
            return _refusal_of_libipsec(variant)
        return None

    def needs(self, variant: Variant) -> Needs:
        """charon, and a kernel with the suite or with TUN devices."""
        if variant["data-plane"] == "user-space":
            return Needs(PROGRAMS, frozenset({TUN}))
        features = {step.feature(variant.outer) for step in _steps(variant)}
        return Needs(PROGRAMS, frozenset(features | _interface_feature(variant)))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Leads packets to where they are encrypted, and has the left gateway initiate."""
        for end in (left, right):
            if variant["data-plane"] == "kernel":
                await xfrm.load_modules(end.node, _steps(variant), variant.outer, cleanup)
                await _steer(end, variant, cleanup)
        protected = await protect(left, right, _protection(variant), cleanup)
        if variant["data-plane"] == "user-space":
            for end in (left, right):
                await end.route_to_peer(cleanup, interface=INTERFACE)

        return _established(protected, partial(read_back, protected), variant)

    async def serve(
        self, server: Gateway, clients: Sequence[Gateway], variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Has all clients initiate, who are given their inside addresses, and leads packets there."""
        interface = INTERFACE if variant["data-plane"] == "user-space" else None
        if interface is None:
            for end in (server, *clients):
                await xfrm.load_modules(end.node, _steps(variant), variant.outer, cleanup)
        served = await remote_access.serve(server, clients, _protection(variant), cleanup)
        await remote_access.route_to_clients(server, clients, interface, cleanup)
        for client in clients:
            via = None if interface else {family: client.peer.outside.address(family) for family in Family}
            await client.route_to_peer(cleanup, interface=interface, via=via)
        return _established(served, served.read_back, variant)

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """Without IPComp's header, which only payload gets that shrinks."""
        udp = [formats.udp()] if variant["nat-traversal"] == "yes" else []
        suite = variant.suite
        is_esp = variant["protocol"] == "esp"
        protected = formats.esp(suite.encryption, suite.integrity) if is_esp else formats.ah(suite.integrity)
        return Encapsulation(
            (formats.ip(variant.outer), *udp, protected),
            Inner.PACKET if variant["mode"] == "tunnel" else Inner.SEGMENT,
            inner_mtu=LIBIPSEC_MTU if variant["data-plane"] == "user-space" else None,
            compresses=variant["compression"] != "none",
        )


TUNNEL = StrongSwan()


def _established(
    protected: Protected | Served, read: Callable[[], Awaitable[ReadBack]], variant: Variant
) -> Established:
    return Established(
        wire=_wire(variant),
        read_back=read,
        programs=protected.programs,
        facts={
            "IKE version": variant["version"],
            "DH group": variant["group"],
            "protocol": variant["protocol"],
            "mode": variant["mode"],
            "compression": variant["compression"],
            "NAT traversal": variant["nat-traversal"],
        },
        compresses=variant["compression"] != "none",
        rekey=protected.rekey,
        handshake_seconds=protected.handshake_seconds,
    )


def _refusal_of_libipsec(variant: Variant) -> str | None:
    if variant["protocol"] == "ah" or variant["mode"] == "transport":
        return "strongSwan's data plane in user space has ESP in tunnel mode alone"
    if variant.suite.integrity == "none":
        return "strongSwan's data plane in user space has no ESP without an integrity check"
    if variant["compression"] != "none":
        return "strongSwan's data plane in user space has no IPComp"
    if variant["steering"] != "policy":
        return (
            f"the steering {variant['steering']} is the kernel's; strongSwan's data plane has its own device"
        )
    if variant["nat-traversal"] == "no":
        return "strongSwan's data plane in user space always sends ESP in UDP: add nat-traversal=yes"
    return None


def _steps(variant: Variant) -> list[xfrm.Step]:
    """What the kernel does to each packet, the innermost first."""
    words = as_esp(variant.suite).algorithms
    if variant["protocol"] == "ah":
        words = {word: algorithm for word, algorithm in words.items() if word == "auth-trunc"}
    mode, in_udp = variant["mode"], variant["nat-traversal"] == "yes"
    chain = [(variant["protocol"], words)]
    if variant["compression"] != "none":
        chain.insert(0, ("comp", {}))
    return [
        xfrm.Step(protocol, "transport" if position else mode, its_words, mode == "tunnel", in_udp=in_udp)
        for position, (protocol, its_words) in enumerate(chain)
    ]


def _interface_feature(variant: Variant) -> set[Feature]:
    ends = ("127.0.0.1", "127.0.0.2") if variant.outer is Family.IPV4 else ("::1", "fd00:ffff::2")
    match variant["steering"]:
        case "xfrm-interface":
            return {link_kind("XFRM", "xfrm", "if_id", "1")}
        case "vti":
            kind = _vti(variant.outer)
            return {link_kind(kind.upper(), kind, "local", ends[0], "remote", ends[1], "key", "1")}
        case _:
            return set()


def _vti(outer: Family) -> str:
    return "vti" if outer is Family.IPV4 else "vti6"


def _protection(variant: Variant) -> Protection:
    esp = as_esp(variant.suite)
    hash_alone = esp.hashed and esp.hashed.strongswan
    transforms = hash_alone if variant["protocol"] == "ah" else esp.strongswan
    assert transforms is not None
    settings = {
        "policy": {},
        "xfrm-interface": {"if_id_in": MARK, "if_id_out": MARK},
        "vti": {"mark_in": MARK, "mark_out": MARK},
    }
    return Protection(
        transforms=transforms,
        connections=_connections(variant),
        protocol=variant["protocol"],
        mode=variant["mode"],
        version=variant["version"],
        authentication=variant["authentication"],
        group=variant["group"],
        data_plane=variant["data-plane"],
        in_udp=variant["nat-traversal"] == "yes",
        compressed=variant["compression"] != "none",
        child_settings=settings[variant["steering"]],
    )


def _connections(variant: Variant) -> tuple[Connection, ...]:
    if variant["mode"] == "transport":
        return tuple(
            Connection(f"hosts-{family}", (Child(family.value, lambda _: "dynamic"),), inside=family)
            for family in Family
        )
    if variant["version"] == "ikev2":
        return (BETWEEN_GATEWAYS,)
    return (Connection("gateways", tuple(_network_of(family) for family in Family)),)


def _network_of(family: Family) -> Child:
    return Child(family.value, lambda site: str(site.inside.network(family)))


async def _steer(end: Gateway, variant: Variant, cleanup: AsyncExitStack) -> None:
    """Leads packets where the kernel encrypts them."""
    if variant["steering"] == "policy":
        via = {family: end.peer.outside.address(family) for family in Family}
        await end.route_to_peer(cleanup, via=via)
        return
    if variant["steering"] == "xfrm-interface":
        words = ("xfrm", "if_id", str(MARK))
    else:
        ends = ("local", str(end.outside), "remote", str(end.peer_outside))
        words = (_vti(variant.outer), *ends, "key", str(MARK))
    await end.node.run("ip", "link", "add", INTERFACE, "type", *words)
    cleanup.push_async_callback(end.node.configure, messages.RemoveLink(INTERFACE))
    await end.node.configure(messages.SetLink(INTERFACE, up=True))
    await end.route_to_peer(cleanup, interface=INTERFACE)


def _wire(variant: Variant) -> frozenset[str]:
    outermost = f"udp {xfrm.UDP_PORT}" if variant["nat-traversal"] == "yes" else variant["protocol"]
    families = list(Family) if variant["mode"] == "transport" else [variant.outer]
    return frozenset(f"{family} {outermost}" for family in families)
