"""PPP links from clients to a server: one between two sites, or many to a gateway for remote access.

The server tells each client its IPv4 address by IPCP (RFC 1332). For IPv6, PPP itself agrees on nothing but
interface identifiers (RFC 5072): for remote access the server names those of the clients' inside addresses,
and advertises the prefix on each link as a router does, from which clients make their addresses (RFC 4862).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from ipaddress import IPv6Address

from tunnelbench.lab import messages
from tunnelbench.lab.program import Program
from tunnelbench.lab.together import together
from tunnelbench.lab.topology import Family
from tunnelbench.tunnels import pppd
from tunnelbench.tunnels.base import Gateway
from tunnelbench.tunnels.daemons import until
from tunnelbench.tunnels.point_to_point import INNER_ADDRESSES

SERVER_ADDRESS = str(INNER_ADDRESSES[1].ipv4.ip)
"""The server's own on all its links."""

_IDENTIFIER = (1 << 64) - 1
"""The part of an IPv6 address that tells the nodes of a link apart."""
_SERVER_IDENTIFIER = IPv6Address(1)
_ADVERTISE = """
import ipaddress, socket, struct, sys
network, *interfaces = ipaddress.ip_network(sys.argv[1]), *sys.argv[2:]
# This router is nobody's default one (RFC 4861, section 4.2) ...
advertisement = struct.pack("!BBHBBHII", 134, 0, 0, 64, 0, 0, 0, 0)
# ... and the prefix is for making addresses, not on the link as a whole, for ever (section 4.6.2).
advertisement += struct.pack("!BBBBIII", 3, 4, network.prefixlen, 0x40, 0xFFFFFFFF, 0xFFFFFFFF, 0)
advertisement += network.network_address.packed
sender = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
sender.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, 255)
for interface in interfaces:
    sender.sendto(advertisement, ("ff02::1", 0, 0, socket.if_nametoindex(interface)))
"""


@dataclass(frozen=True)
class Link:
    """One client's link."""

    client: Gateway
    server: Gateway
    """Its peer is this client's site."""
    secret: pppd.Secret
    number: int = 0
    """Of the server's interface."""
    is_remote_access: bool = False
    """Whether the client gets its site's inside address."""

    @property
    def name(self) -> str:
        """The client's."""
        return self.client.site.gateway

    @property
    def server_interface(self) -> str:
        """What the server calls its end; clients have one link each, `pppd.INTERFACE`."""
        return f"ppp{self.number}"

    def options_of_server(self, negotiation: pppd.Negotiation, directory: str) -> Iterator[str]:
        """The lines of pppd's options file for the server's end, which logs to a file of its own."""
        yield from pppd.options(negotiation, self.server, server=True)
        yield f"unit {self.number}"
        if self.is_remote_access:
            identifier = IPv6Address(int(self.client.site.inside.ipv6.ip) & _IDENTIFIER)
            yield f"ipv6 {_SERVER_IDENTIFIER},{identifier}"
        yield f"logfile {pppd.log_file(directory, self.name)}"

    async def guards(self, cleanup: AsyncExitStack) -> Sequence[Program]:
        """Programs that end when the pppd of an end does, the server's first."""
        return [
            await pppd.guard(self.server, self.server_interface, cleanup),
            await pppd.guard(self.client, pppd.INTERFACE, cleanup),
        ]


def between_sites(client: Gateway, server: Gateway) -> Link:
    """The link of two gateways, with addresses of its own and a new password."""
    return Link(client, server, pppd.Secret.fresh(client, str(INNER_ADDRESSES[0].ipv4.ip)))


def of_clients(server: Gateway, clients: Sequence[Gateway]) -> Sequence[Link]:
    """A link for each client, which gets its inside address, with a new password."""
    return [
        Link(
            client,
            replace(server, peer=client.site),
            pppd.Secret.fresh(client, str(client.site.inside.ipv4.ip)),
            number,
            is_remote_access=True,
        )
        for number, client in enumerate(clients)
    ]


async def route(links: Sequence[Link], daemon: Program, timeout: float, cleanup: AsyncExitStack) -> None:
    """Leads traffic for the other site into each link that is up, once clients have all their addresses.

    Raises NodeError with the last lines of `daemon`, the server's, where one has not got its own in time.
    """
    if not any(link.is_remote_access for link in links):
        for end in (end for link in links for end in (link.client, link.server)):
            await end.route_to_peer(cleanup, interface=pppd.INTERFACE)
        return
    await _give_ipv6_addresses(links, daemon, timeout)
    await together(*(_route_to_client(link, cleanup) for link in links))


async def _route_to_client(link: Link, cleanup: AsyncExitStack) -> None:
    # pppd has made the server's one for IPv4.
    own = f"{link.client.site.inside.ipv6.ip}/128"
    await link.server.node.configure(messages.AddRoute(own, interface=link.server_interface))
    cleanup.push_async_callback(link.server.node.run, "ip", "route", "del", own, check=False)
    await link.client.route_to_peer(cleanup, interface=pppd.INTERFACE)


async def _give_ipv6_addresses(links: Sequence[Link], daemon: Program, timeout: float) -> None:
    """Advertises the clients' prefix until each has made its address."""
    server, prefix = links[0].server.node, links[0].client.site.inside.network(Family.IPV6)
    # Even where a client forwards packets itself.
    accept = messages.SetSysctl(f"net/ipv6/conf/{pppd.INTERFACE}/accept_ra", "2")
    await together(*(link.client.node.configure(accept) for link in links))
    interfaces = [link.server_interface for link in links]

    async def all_have_theirs() -> bool:
        await server.run("python3", "-c", _ADVERTISE, str(prefix), *interfaces)
        return all(await together(*map(_has_its_address, links)))

    await until(all_have_theirs, timeout, f"a client made no address of {prefix}", daemon, every=0.2)


async def _has_its_address(link: Link) -> bool:
    shown = await link.client.node.run("ip", "-o", "-6", "address", "show", "dev", pppd.INTERFACE)
    return f" {link.client.site.inside.ipv6} " in shown.text
