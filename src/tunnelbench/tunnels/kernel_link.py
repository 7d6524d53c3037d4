"""What IPIP, GRE and their kin have in common: links of the kernel that wrap packets and encrypt nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from typing import ClassVar

from tunnelbench.lab import messages
from tunnelbench.lab.features import link_kind
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Layer
from tunnelbench.overhead import layers as formats
from tunnelbench.tunnels.base import (
    EVERYTHING,
    NO_SUITE,
    Established,
    Gateway,
    Needs,
    ReadBack,
    Traffic,
    Tunnel,
    Variant,
    suites,
)
from tunnelbench.tunnels.point_to_point import INTERFACE

_EXAMPLE_ENDS = {Family.IPV4: ("127.0.0.1", "127.0.0.2"), Family.IPV6: ("fd00:ffff::1", "fd00:ffff::2")}


def over(family: Family) -> frozenset[Traffic]:
    """All traffic of one IP version."""
    return frozenset(traffic for traffic in EVERYTHING if traffic[1] is family)


class KernelLink(Tunnel):
    """A link of the kernel, made on both gateways, that takes packets."""

    suites = suites(NO_SUITE)
    kinds: ClassVar[Mapping[Family, str]]
    """The kind of link (ip-link(8)) by the IP version between the gateways."""
    arguments: ClassVar[tuple[str, ...]] = ()
    """What ip-link(8) is told besides the addresses."""
    protocols: ClassVar[Collection[str]]
    """What follows the outer IP header, as captures name it."""

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def needs(self, variant: Variant) -> Needs:
        """Links of this kind."""
        kind, (local, remote) = self.kinds[variant.outer], _EXAMPLE_ENDS[variant.outer]
        feature = link_kind(self.title, kind, "local", local, "remote", remote, *self.arguments)
        return Needs(features=frozenset({feature}))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Makes the link on both gateways, and routes each site over it."""
        return await link_up(
            left,
            right,
            variant,
            self.kinds[variant.outer],
            self.protocols,
            cleanup,
            *self.arguments,
            families=sorted({family for _, family in self.carries}),
        )

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """The outer IP header, and what this link puts after it."""
        # Linux limits by default how often a packet may be wrapped in IPv6 (RFC 2473).
        limit = () if variant.outer is Family.IPV4 else (formats.ipv6_tunnel_limit(),)
        return Encapsulation((formats.ip(variant.outer), *limit, *self.headers()))

    def headers(self) -> tuple[Layer, ...]:
        """What follows the outer IP header."""
        return ()


async def link_up(
    left: Gateway,
    right: Gateway,
    variant: Variant,
    kind: str,
    protocols: Collection[str],
    cleanup: AsyncExitStack,
    *arguments: str,
    families: Collection[Family] = tuple(Family),
) -> Established:
    """Makes a link of a kind (ip-link(8)) between both gateways, and routes each site over it.

    `protocols` are those after the outer IP header, as captures name them; `families` are what is routed.
    """
    for end in (left, right):
        await end.node.run(
            *("ip", "link", "add", INTERFACE, "type", kind),
            *("local", str(end.outside), "remote", str(end.peer_outside), "ttl", "64", *arguments),
        )
        cleanup.push_async_callback(end.node.configure, messages.RemoveLink(INTERFACE))
        await end.node.configure(messages.SetLink(INTERFACE, up=True))
        await end.route_to_peer(cleanup, interface=INTERFACE, families=tuple(families))

    async def read_back() -> ReadBack:
        shown = [await end.node.run("ip", "-d", "link", "show", INTERFACE) for end in (left, right)]
        return ReadBack.agreed(read_link(completed.text, kind, variant.suite.name) for completed in shown)

    return Established(
        wire=frozenset(f"{variant.outer} {protocol}" for protocol in protocols),
        read_back=read_back,
    )


def read_link(text: str, kind: str, suite: str) -> ReadBack:
    """The suite of a link, if `ip -d link` says that it is of this kind."""
    return ReadBack(suite if f" {kind} " in text else None, text.strip())
