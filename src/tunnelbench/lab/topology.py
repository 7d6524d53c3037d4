"""The networks that a lab can be: nodes, links between them, addresses, and the two sites a tunnel joins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Interface, IPv4Network, IPv6Address, IPv6Interface, IPv6Network


class Family(StrEnum):
    """An IP version."""

    IPV4 = "ipv4"
    IPV6 = "ipv6"


@dataclass(frozen=True)
class Addresses:
    """One interface's address of each family, with its network."""

    ipv4: IPv4Interface
    ipv6: IPv6Interface

    @classmethod
    def parse(cls, ipv4: str, ipv6: str) -> Addresses:
        """From texts such as `10.1.0.1/24` and `fd00:1::1/64`."""
        return cls(IPv4Interface(ipv4), IPv6Interface(ipv6))

    def interface(self, family: Family) -> IPv4Interface | IPv6Interface:
        """The address with its prefix length."""
        return self.ipv4 if family is Family.IPV4 else self.ipv6

    def address(self, family: Family) -> IPv4Address | IPv6Address:
        """The address alone."""
        return self.interface(family).ip

    def network(self, family: Family) -> IPv4Network | IPv6Network:
        """The network it belongs to."""
        return self.interface(family).network


@dataclass(frozen=True)
class LinkEnd:
    """One end of a link: the node, and what the interface is called there."""

    node: str
    interface: str


@dataclass(frozen=True)
class Link:
    """A link between two nodes; `wire` says whether it is the one that all tunnels' packets cross."""

    left: LinkEnd
    right: LinkEnd
    wire: bool = False

    @property
    def ends(self) -> tuple[LinkEnd, LinkEnd]:
        """Both ends."""
        return (self.left, self.right)


@dataclass(frozen=True)
class Site:
    """One side of a tunnel: the host whose traffic it carries, and the gateway where it ends."""

    host: str
    gateway: str
    inside: Addresses
    """The host's address, in the network that the tunnel joins to the other site's."""
    outside: Addresses
    """The gateway's address on the wire to the other gateway."""
    gateway_inside: Addresses | None
    """The gateway's address towards the host; None where host and gateway are one."""

    @property
    def is_one_node(self) -> bool:
        """Whether the host is its own gateway."""
        return self.host == self.gateway


@dataclass(frozen=True)
class Topology:
    """A network to build."""

    name: str
    nodes: tuple[str, ...]
    links: tuple[Link, ...]
    clients: tuple[Site, ...]
    """The sites from which connections are made: one, except in remote access."""
    server: Site
    addresses: Mapping[LinkEnd, Addresses]
    """What each interface is called by; hosts that are gateways have their inside address on `lo`."""
    switch: str | None = None
    """The node that is a bridge between its links."""
    wifi: str | None = None
    """The node that is a hop of Wi-Fi between its two links."""

    @property
    def sites(self) -> tuple[Site, Site]:
        """The first client's site, and the server's."""
        return (self.clients[0], self.server)

    @property
    def hosts(self) -> frozenset[str]:
        """The nodes where traffic begins and ends; a client of remote access is one."""
        return frozenset(site.host for site in (*self.clients, self.server))

    @property
    def gateways(self) -> tuple[str, ...]:
        """The nodes on which tunnels end."""
        return tuple(site.gateway for site in (*self.clients, self.server))

    @property
    def wire(self) -> Link:
        """The link between the gateways, its end towards the clients first."""
        return next(link for link in self.links if link.wire)

    def names(self) -> dict[str, Addresses]:
        """The addresses under which every node knows every other."""
        sites = (*self.clients, self.server)
        return {site.gateway: site.outside for site in sites} | {site.host: site.inside for site in sites}


WIFI_PORTS = ("host", "gateway")
"""What the links of a hop of Wi-Fi are called on its node: that of the station, that of the access point."""

_INSIDE = (Addresses.parse("10.1.0.10/24", "fd00:1::10/64"), Addresses.parse("10.2.0.10/24", "fd00:2::10/64"))
_GATEWAY = (Addresses.parse("10.1.0.1/24", "fd00:1::1/64"), Addresses.parse("10.2.0.1/24", "fd00:2::1/64"))
_OUTSIDE = (
    Addresses.parse("192.168.0.1/24", "fd00:0::1/64"),
    Addresses.parse("192.168.0.2/24", "fd00:0::2/64"),
)


def _site_to_site() -> Topology:
    sites = (
        Site("host1", "gw1", _INSIDE[0], _OUTSIDE[0], _GATEWAY[0]),
        Site("host2", "gw2", _INSIDE[1], _OUTSIDE[1], _GATEWAY[1]),
    )
    return Topology(
        name="site-to-site",
        nodes=("host1", "gw1", "gw2", "host2"),
        links=(
            Link(LinkEnd("host1", "eth0"), LinkEnd("gw1", "lan")),
            Link(LinkEnd("gw1", "wan"), LinkEnd("gw2", "wan"), wire=True),
            Link(LinkEnd("gw2", "lan"), LinkEnd("host2", "eth0")),
        ),
        clients=(sites[0],),
        server=sites[1],
        addresses={
            LinkEnd(node, interface): addresses
            for number, site in enumerate(sites)
            for node, interface, addresses in (
                (site.host, "eth0", site.inside),
                (site.gateway, "lan", _GATEWAY[number]),
                (site.gateway, "wan", site.outside),
            )
        },
    )


def _host_to_host() -> Topology:
    sites = (
        Site("host1", "host1", _INSIDE[0], _OUTSIDE[0], None),
        Site("host2", "host2", _INSIDE[1], _OUTSIDE[1], None),
    )
    return Topology(
        name="host-to-host",
        nodes=("host1", "host2"),
        links=(Link(LinkEnd("host1", "wan"), LinkEnd("host2", "wan"), wire=True),),
        clients=(sites[0],),
        server=sites[1],
        addresses={
            LinkEnd(site.host, interface): addresses
            for site in sites
            for interface, addresses in (("lo", site.inside), ("wan", site.outside))
        },
    )


def remote_access(clients: int) -> Topology:
    """Clients, each with an address of its own on one switch with the gateway, and a host behind that.

    A client's inside address is the one that its VPN must give it: the lab gives it none.
    """
    sites = tuple(_client(number) for number in range(1, clients + 1))
    server = Site("host", "gw", _INSIDE[1], _OUTSIDE[0], _GATEWAY[1])
    uplink = Link(LinkEnd("switch", "uplink"), LinkEnd("gw", "wan"), wire=True)
    ports = (
        Link(LinkEnd(site.host, "wan"), LinkEnd("switch", f"port{number}"))
        for number, site in enumerate(sites, 1)
    )
    return Topology(
        name="remote-access",
        nodes=(*(site.host for site in sites), "switch", "gw", "host"),
        links=(*ports, uplink, Link(LinkEnd("gw", "lan"), LinkEnd("host", "eth0"))),
        clients=sites,
        server=server,
        addresses={
            **{LinkEnd(site.host, "wan"): site.outside for site in sites},
            LinkEnd("gw", "wan"): server.outside,
            LinkEnd("gw", "lan"): _GATEWAY[1],
            LinkEnd("host", "eth0"): server.inside,
        },
        switch="switch",
    )


def with_wifi(topology: Topology) -> Topology:
    """The same with a hop of Wi-Fi between the first host and its gateway.

    Raises ValueError where the two are one.
    """
    site = topology.clients[0]
    if site.is_one_node:
        raise ValueError(f"{topology.name} has no link between {site.host} and a gateway")
    node = "wifi"
    hop: list[Link] = []
    for link in topology.links:
        if {end.node for end in link.ends} == {site.host, site.gateway}:
            ports = [LinkEnd(node, name) for name in WIFI_PORTS]
            hop += [Link(link.left, ports[0]), Link(ports[1], link.right)]
        else:
            hop.append(link)
    return replace(topology, nodes=(*topology.nodes, node), links=tuple(hop), wifi=node)


def _client(number: int) -> Site:
    last = 10 + number
    name = f"client{number}"
    inside = Addresses.parse(f"10.1.0.{last}/24", f"fd00:1::{last}/64")
    outside = Addresses.parse(f"192.168.0.{last}/24", f"fd00:0::{last}/64")
    return Site(name, name, inside, outside, None)


TOPOLOGIES: Mapping[str, Topology] = {
    topology.name: topology for topology in (_site_to_site(), _host_to_host(), remote_access(1))
}
"""Every topology by its name in a study, with one client."""


def topology_of(name: str, clients: int = 1) -> Topology:
    """The topology of a name, with so many clients where it can have several."""
    return TOPOLOGIES[name] if clients == 1 else remote_access(clients)
