"""strongSwan as a server for clients: IKEv2 (RFC 7296) gives each the inside address that its site has.

The server has a connection and pools of one address for each client, which it knows by its certificate or by
a key that both share. Where what is protected has addresses of its own, there are no pools.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_network

from tunnelbench.lab import messages
from tunnelbench.lab.program import Program
from tunnelbench.lab.together import together
from tunnelbench.lab.topology import Family, Site
from tunnelbench.tunnels.base import Gateway, ReadBack
from tunnelbench.tunnels.strongswan_configuration import (
    Child,
    Connection,
    Credentials,
    Protection,
    Section,
    connection_settings,
    inside_networks,
    written,
)
from tunnelbench.tunnels.strongswan_daemon import Charon, agree, fresh_credentials, load_all, rekey, start
from tunnelbench.tunnels.strongswan_read_back import read_end


@dataclass(frozen=True)
class Served:
    """A server and clients that are protected on their way to it."""

    server: Charon
    clients: Sequence[Charon]
    protection: Protection
    child: Child
    """What each client and the server protect."""
    handshake_seconds: float | None
    """The longest of all clients, which agree with the server at the same time."""

    @property
    def programs(self) -> Sequence[Program]:
        """All daemons."""
        return [self.server.program, *(client.program for client in self.clients)]

    async def rekey(self) -> None:
        """Has all clients replace the keys of packets; returns once all ends use new ones."""
        await rekey(self.clients, self.server, [self.child.name])

    async def read_back(self) -> ReadBack:
        """What all daemons say, and their kernels where they encrypt."""
        in_kernel = self.protection.data_plane == "kernel"
        at_server = read_end(self.server, len(self.clients), in_kernel=in_kernel)
        at_clients = (read_end(client, 1, in_kernel=in_kernel) for client in self.clients)
        return ReadBack.agreed(await asyncio.gather(at_server, *at_clients))


async def serve(
    server: Gateway,
    clients: Sequence[Gateway],
    protection: Protection,
    cleanup: AsyncExitStack,
    *,
    gives_addresses: bool = True,
) -> Served:
    """Starts all daemons, and has all clients initiate at once; each has its address when this returns.

    Without `gives_addresses` it is the first child of the protection that is between each client and the
    server, whose addresses are those on the wire.
    """
    child = protection.children[0]
    if gives_addresses:
        child = Child("net", lambda site: inside_networks(site) if site == server.site else "dynamic")
    credentials = _fresh_credentials(server, clients, protection)

    async def start_client(client: Gateway) -> Charon:
        own = credentials[client.site.gateway]
        for family in Family if gives_addresses and protection.data_plane == "kernel" else ():
            # A daemon that was killed leaves the address that it was given.
            address = ("address", "del", _alone(client.site, family), "dev", "lo")
            cleanup.push_async_callback(client.node.run, "ip", *address, check=False)
        text = _of_client(client, child, protection, own, gives_addresses=gives_addresses)
        return await start(client, protection, text, own, cleanup)

    text = _of_server(server, clients, child, protection, credentials, gives_addresses=gives_addresses)
    at_server = await start(server, protection, text, credentials[server.site.gateway], cleanup)
    at_clients = await together(*map(start_client, clients))
    await load_all([at_server, *at_clients])
    handshakes = await together(
        *(
            agree(charon, at_server, child.name, rf"=== .*{_end(client, gives_addresses)}/32")
            for client, charon in zip(clients, at_clients, strict=True)
        )
    )
    known = [seconds for seconds in handshakes if seconds is not None]
    longest = max(known) if len(known) == len(clients) else None
    return Served(at_server, at_clients, protection, child, longest)


async def route_to_clients(
    server: Gateway, clients: Sequence[Gateway], interface: str | None, cleanup: AsyncExitStack
) -> None:
    """Leads packets for the clients' inside addresses to where the server encrypts them."""
    for client in clients:
        for family in Family:
            own = _alone(client.site, family)
            via = None if interface else str(client.site.outside.address(family))
            await server.node.configure(messages.AddRoute(own, gateway=via, interface=interface))
            cleanup.push_async_callback(server.node.run, "ip", "route", "del", own, check=False)


def _alone(site: Site, family: Family) -> str:
    return str(ip_network(site.inside.address(family)))


def _fresh_credentials(
    server: Gateway, clients: Sequence[Gateway], protection: Protection
) -> Mapping[str, Credentials]:
    names = [client.site.gateway for client in clients]
    if protection.authentication != "psk":
        return fresh_credentials([server.site.gateway, *names], protection)
    keys = {name: Credentials(shared=secrets.token_hex(32)) for name in names}
    return {**keys, server.site.gateway: Credentials()}


def _end(client: Gateway, gives_addresses: bool) -> IPv4Address | IPv6Address:
    """The client's end of what is protected."""
    return client.site.inside.ipv4.ip if gives_addresses else client.outside


def _of_client(
    client: Gateway, child: Child, protection: Protection, credentials: Credentials, *, gives_addresses: bool
) -> str:
    connection = connection_settings(client, Connection("server", (child,)), protection, credentials)
    asked: Section = {"vips": "0.0.0.0,::"} if gives_addresses else {}
    keys: Section = {"ike-server": {"secret": credentials.shared}} if credentials.shared else {}
    return written({"connections": {"server": {**connection, **asked}}, "secrets": keys})


def _of_server(
    server: Gateway,
    clients: Sequence[Gateway],
    child: Child,
    protection: Protection,
    credentials: Mapping[str, Credentials],
    *,
    gives_addresses: bool,
) -> str:
    connections: dict[str, Section] = {}
    pools: dict[str, Section] = {}
    keys: dict[str, Section] = {}
    for client in clients:
        name = client.site.gateway
        towards_client = replace(server, peer=client.site)
        own = credentials[server.site.gateway]
        connection = connection_settings(towards_client, Connection(name, (child,)), protection, own)
        own_pools = {f"{name}-{family}": {"addrs": _alone(client.site, family)} for family in Family}
        given: Section = {"pools": ",".join(own_pools)} if gives_addresses else {}
        connections[name] = {**connection, **given}
        pools |= own_pools if gives_addresses else {}
        if shared := credentials[name].shared:
            keys[f"ike-{name}"] = {"secret": shared, "id": str(client.outside)}
    return written({"connections": connections, "pools": pools, "secrets": keys})
