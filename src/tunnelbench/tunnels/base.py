"""What every VPN is to the rest of the product.

A VPN is one module in this package with one class that implements `Tunnel`, and one constant `TUNNEL` that is
an instance of it. It declares what it needs, which suites it has and what it carries; it brings the tunnel up
between two gateways, observes that it is up, and reads back what was negotiated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from typing import ClassVar, get_args

from tunnelbench.lab import messages
from tunnelbench.lab.features import Needs as Needs
from tunnelbench.lab.lab import Lab
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family, Site
from tunnelbench.study.vocabulary import Transport

Traffic = tuple[Transport, Family]

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
class Gateway:
    """One end of a tunnel as its configuration sees it."""

    node: Node
    site: Site
    peer: Site

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


def gateways(lab: Lab) -> tuple[Gateway, Gateway]:
    """Both ends of a lab's tunnel, each with its own site and its peer's."""
    left, right = lab.sites
    return Gateway(lab.nodes[left.gateway], left, right), Gateway(lab.nodes[right.gateway], right, left)


@dataclass(frozen=True)
class Target:
    """Where a load's client connects for its traffic to reach the server through the tunnel."""

    address: IPv4Address | IPv6Address
    port: int


@dataclass(frozen=True)
class ReadBack:
    """What the running implementation says is in use."""

    suite: str | None
    """The suite's name; None where what is in use is no suite of this VPN."""
    text: str
    """The words in which it says so, with keys left out."""

    @classmethod
    def agreed(cls, ends: Iterable[ReadBack]) -> ReadBack:
        """What several ends say together; no suite where they differ."""
        all_ends = list(ends)
        found = {end.suite for end in all_ends}
        return cls(found.pop() if len(found) == 1 else None, "\n".join(end.text for end in all_ends))


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
    in_kernel: ClassVar[bool]
    """Whether packets stay in the kernel on their way through a gateway."""

    @abstractmethod
    def needs(self, suite: Suite) -> Needs:
        """What both gateways must have for this suite."""

    @abstractmethod
    async def up(self, left: Gateway, right: Gateway, suite: Suite, cleanup: AsyncExitStack) -> Established:
        """Brings the tunnel up, and returns once both ends say that it is.

        Everything that must be undone is pushed on `cleanup` as soon as it is done, so that a failure
        half-way leaves nothing. Keys are fresh on each call. Raises NodeError, with the last lines of a
        daemon's log where it did not come up.
        """


def suites(*all_suites: Suite) -> Mapping[str, Suite]:
    """Suites by name."""
    return {suite.name: suite for suite in all_suites}
