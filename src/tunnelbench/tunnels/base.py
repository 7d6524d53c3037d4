"""What every VPN is to the rest of the product.

A VPN is one module in this package with one class that implements `Tunnel`, and one constant `TUNNEL` that is
an instance of it. It declares what it needs, which suites it has and what it carries; it brings the tunnel up
between two gateways, observes that it is up, and reads back what was negotiated.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar, get_args

from tunnelbench.errors import UserError
from tunnelbench.lab import messages
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.features import Needs as Needs
from tunnelbench.lab.lab import Lab
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family, Site
from tunnelbench.overhead import Encapsulation
from tunnelbench.study.nearest import advice_on
from tunnelbench.study.vocabulary import Transport

Traffic = tuple[Transport, Family]

_UP_SECONDS = 60.0
_CLIENT_SECONDS = 3.0
"""Clients come up together, but all of them on the processors of one machine: idle, the slowest VPN takes two
seconds for each."""

EVERYTHING: frozenset[Traffic] = frozenset(
    (transport, family) for transport in get_args(Transport) for family in Family
)
"""Whatever goes over IPv4 and IPv6."""


@dataclass(frozen=True)
class Suite:
    """A cipher suite: its name in studies, and what it is in words."""

    name: str
    encryption: str
    """Cipher, key length and mode, such as `AES-128-CBC`; `none` for no encryption."""
    integrity: str
    """Such as `HMAC-SHA-1-96`; `none`, or `with the cipher` for an AEAD."""

    @property
    def encrypts(self) -> bool:
        """Whether payload must be unreadable on the wire."""
        return self.encryption != "none"


NO_SUITE = Suite("none", "none", "none")
"""The single suite of what does not encrypt."""


@dataclass(frozen=True)
class Option:
    """A choice that a VPN leaves open besides its suite: a factor of studies."""

    name: str
    """Such as `carrier`."""
    levels: tuple[str, ...]
    """The first is the default."""
    meaning: str
    """In one sentence."""


@dataclass(frozen=True)
class Variant:
    """One way to run a VPN."""

    suite: Suite
    options: Mapping[str, str]
    """Every option of the VPN with its level."""
    outer: Family = Family.IPV4
    """The IP version between the gateways."""

    def __getitem__(self, option: str) -> str:
        """The level of an option."""
        return self.options[option]


@dataclass(frozen=True)
class Place:
    """Where a VPN is to run, as far as that is known when a study is read."""

    release: str | None
    """The Debian release of the image, such as `bookworm`; None where that is unknown."""
    topology: str
    clients: int = 1


@dataclass(frozen=True)
class Gateway:
    """One end of a tunnel as its configuration sees it."""

    node: Node
    site: Site
    peer: Site
    outer: Family = Family.IPV4
    """The IP version between the gateways."""

    @property
    def outside(self) -> IPv4Address | IPv6Address:
        """Its own address on the wire."""
        return self.site.outside.address(self.outer)

    @property
    def peer_outside(self) -> IPv4Address | IPv6Address:
        """The other end's address on the wire."""
        return self.peer.outside.address(self.outer)

    async def route_to_peer(
        self,
        cleanup: AsyncExitStack,
        *,
        interface: str | None = None,
        via: Mapping[Family, IPv4Address | IPv6Address] | None = None,
        families: Sequence[Family] = tuple(Family),
    ) -> None:
        """Leads traffic for the peer's site to an interface, a next hop, or both, until `cleanup`.

        A host that is its own gateway sends from its inside address, so that replies come back the same way.
        """
        for family in families:
            destination = str(self.peer.inside.network(family))
            await self.node.configure(
                messages.AddRoute(
                    destination,
                    gateway=str(via[family]) if via else None,
                    interface=interface,
                    source=str(self.site.inside.address(family)) if self.site.is_one_node else None,
                )
            )
            cleanup.push_async_callback(self._remove_route, destination)

    async def _remove_route(self, destination: str) -> None:
        """Routes over an interface go with it, so a route that is already gone is no error."""
        await self.node.run("ip", "route", "del", destination, check=False)


def gateways(lab: Lab, outer: Family = Family.IPV4) -> tuple[Gateway, Gateway]:
    """Both ends of a lab's tunnel, each with its own site and its peer's."""
    left, right = lab.sites
    return (
        Gateway(lab.nodes[left.gateway], left, right, outer),
        Gateway(lab.nodes[right.gateway], right, left, outer),
    )


async def bring_up(lab: Lab, tunnel: Tunnel, variant: Variant, cleanup: AsyncExitStack) -> Established:
    """Brings a tunnel up in a lab, or one from each client where the lab is for remote access.

    Raises NodeError where it fails, or isn't up within `_UP_SECONDS` and `_CLIENT_SECONDS` for each client.
    """
    is_for_clients = lab.topology.switch is not None
    seconds = _UP_SECONDS + (_CLIENT_SECONDS * len(lab.topology.clients) if is_for_clients else 0.0)
    try:
        async with asyncio.timeout(seconds):
            if is_for_clients:
                return await tunnel.serve(*remote_gateways(lab, variant.outer), variant, cleanup)
            return await tunnel.up(*gateways(lab, variant.outer), variant, cleanup)
    except TimeoutError:
        raise NodeError(f"{tunnel.title} did not come up within {seconds:g} s") from None


def remote_gateways(lab: Lab, outer: Family = Family.IPV4) -> tuple[Gateway, Sequence[Gateway]]:
    """The gateway of a lab for remote access, whose peer is the first client, and all clients."""
    server = lab.topology.server
    clients = [Gateway(lab.nodes[site.gateway], site, server, outer) for site in lab.topology.clients]
    return Gateway(lab.nodes[server.gateway], server, clients[0].site, outer), clients


@dataclass(frozen=True)
class Target:
    """Where a load's client connects for its traffic to reach the server through the tunnel."""

    address: IPv4Address | IPv6Address
    port: int
    proxy: Target | None = None
    """The SOCKS 5 proxy that is to be asked to connect there."""


@dataclass(frozen=True)
class ReadBack:
    """What the running implementation says is in use."""

    suite: str | None
    """The suite's name; None where what is in use is no suite of this VPN."""
    text: str
    """The words in which it says so, with keys left out."""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What else it says, by name: `{"DH group": "modp2048", "mode": "tunnel"}`."""

    @classmethod
    def agreed(cls, ends: Iterable[ReadBack]) -> ReadBack:
        """What several ends say together; no suite where they differ, and of the facts those in common."""
        all_ends = list(ends)
        suites = {end.suite for end in all_ends}
        return cls(
            suites.pop() if len(suites) == 1 else None,
            "\n".join(end.text for end in all_ends),
            {
                name: value
                for name, value in all_ends[0].facts.items()
                if all(end.facts.get(name) == value for end in all_ends)
            },
        )


KEYS_BY_HAND = "they were written by hand, and nothing negotiates others"
"""`Established.rekey_refusal` of VPNs in which no program exchanges keys."""


@dataclass(frozen=True)
class Established:
    """A tunnel that is up."""

    wire: frozenset[str]
    """The protocols that may and must cross the wire, as captures name them: `ipv4 esp`, `ipv4 udp 1194`."""
    read_back: Callable[[], Awaitable[ReadBack]]
    """Asks the running implementation for the suite in use."""
    programs: Sequence[Program] = ()
    """The daemons that must live as long as the tunnel is up."""
    forwards: Mapping[tuple[Family, int], Target] = field(default_factory=dict[tuple[Family, int], Target])
    """For VPNs that forward single ports: the family and the server's port, and where to connect for it."""
    proxies: Mapping[Family, Target] = field(default_factory=dict[Family, Target])
    """For VPNs that are SOCKS 5 proxies (RFC 1928): where clients of each family reach one."""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was asked for besides the suite, and must be equal in what is read back."""
    compresses: bool = False
    """Whether payload that can be compressed must shrink on the wire."""
    rekey: Callable[[], Awaitable[None]] | None = None
    """Forces new keys, and returns once both ends use them; None where nothing can."""
    rekey_refusal: str | None = None
    """Why it can't be measured what new keys cost; None where it can, and where there are no keys."""
    handshake_seconds: float | None = None
    """From a handshake's first packet until both ends say it is done, where there is one."""

    def dead(self) -> Program | None:
        """A daemon that has died, if any has."""
        return next((program for program in self.programs if not program.running), None)


class Tunnel(ABC):
    """One VPN."""

    name: ClassVar[str]
    """Its name in studies and on the command line."""
    title: ClassVar[str]
    """Its name in reports."""
    suites: ClassVar[Mapping[str, Suite]]
    """Its suites by name, in a sensible order for reports."""
    carries: ClassVar[frozenset[Traffic]] = EVERYTHING
    """The traffic that can be sent through it."""
    is_proxy: ClassVar[bool] = False
    """Whether it carries only what asks it to, in SOCKS 5: `Established.proxies` says where."""
    options: ClassVar[Mapping[str, Option]] = {}
    """What it leaves open besides the suite, by name."""
    outer_families: ClassVar[frozenset[Family]] = frozenset({Family.IPV4})
    """The IP versions that it can use between the gateways."""
    topologies: ClassVar[frozenset[str]] = frozenset({"site-to-site", "host-to-host"})
    """The topologies that it makes sense in."""

    @property
    def default_outer(self) -> Family:
        """The IP version between the gateways where none is asked for: IPv4, unless it is made for IPv6."""
        return Family.IPV4 if Family.IPV4 in self.outer_families else Family.IPV6

    @abstractmethod
    def in_kernel(self, variant: Variant) -> bool:
        """Whether packets stay in the kernel on their way through a gateway."""

    def carried(self, variant: Variant) -> frozenset[Traffic]:
        """The traffic that can be sent through this variant."""
        return self.carries

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """Why there can't be this variant, alone or in this place; None where nothing speaks against it.

        Says which releases have what another one lacks. What only a running kernel can tell is for `needs`.
        """
        return None

    @abstractmethod
    def needs(self, variant: Variant) -> Needs:
        """What both gateways must have for this variant."""

    @abstractmethod
    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Brings the tunnel up, and returns once both ends say that it is.

        Everything that must be undone is pushed on `cleanup` as soon as it is done, so that a failure
        half-way leaves nothing. Keys are fresh on each call. Raises NodeError, with the last lines of a
        daemon's log where it did not come up.
        """

    def encapsulation(self, variant: Variant) -> Encapsulation | None:
        """What a variant makes of what it carries, from its formats alone: see `tunnelbench.overhead`.

        None where nobody has described its packets yet.
        """
        return None

    async def serve(
        self, server: Gateway, clients: Sequence[Gateway], variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Brings the server and all its clients up; each client gets its site's inside address.

        For VPNs with `remote-access` among their topologies. What `up` promises holds here, too.
        """
        raise NotImplementedError(f"{self.name} is not made for remote access")

    def variant(
        self, suite: str, options: Mapping[str, str] | None = None, outer: Family | None = None
    ) -> Variant:
        """The variant with these levels, and the default in all that is not named.

        Raises UserError that names the nearest valid name where there is no such suite, option or level.
        """
        asked = options or {}
        if suite not in self.suites:
            raise _unknown("suite", suite, self.suites, self.name)
        for name, level in asked.items():
            if name not in self.options:
                raise _unknown("option", name, self.options, self.name)
            if level not in self.options[name].levels:
                raise _unknown(f"level of {name}", level, self.options[name].levels, self.name)
        levels = {name: asked.get(name, option.levels[0]) for name, option in self.options.items()}
        return Variant(self.suites[suite], levels, outer or self.default_outer)

    def objection(self, variant: Variant, place: Place) -> str | None:
        """Why this variant can't be in this place, whatever the reason; None where it can."""
        if place.topology not in self.topologies:
            return f"{self.title} is not made for the topology {place.topology}"
        if variant.outer not in self.outer_families:
            return f"{self.title} has no {written(variant.outer)} between the gateways"
        return self.refusal(variant, place)


def _unknown(kind: str, name: str, known: Iterable[str], vpn: str) -> UserError:
    return UserError(f"{vpn} has no {kind} '{name}'", advice=advice_on(name, known, f"{kind}s"))


def written(family: Family) -> str:
    """As it is written in sentences: `IPv4`."""
    return family.value.replace("ip", "IP")


def suites(*all_suites: Suite) -> Mapping[str, Suite]:
    """Suites by name."""
    return {suite.name: suite for suite in all_suites}


def options(*all_options: Option) -> Mapping[str, Option]:
    """Options by name."""
    return {option.name: option for option in all_options}
