"""OpenVPN as a server for clients: one daemon, one network interface, and TLS with each client.

The server knows clients by their certificates' names, and gives each the inside address that its site has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import Established, Gateway, ReadBack, Variant
from tunnelbench.tunnels.certificates import Authority
from tunnelbench.tunnels.daemons import all_print
from tunnelbench.tunnels.openvpn_configuration import (
    CLIENTS,
    FILE,
    address_of_client,
    certificates,
    device,
    for_client,
    for_server,
    server_inside,
)
from tunnelbench.tunnels.openvpn_daemon import (
    READY_SECONDS,
    End,
    asked,
    longest_handshake,
    read_back,
    rekey_refusal,
    renews_by_volume,
    start,
    use_keys_up,
    wire,
)


async def serve(
    server: Gateway, clients: Sequence[Gateway], variant: Variant, cleanup: AsyncExitStack
) -> Established:
    """Starts the server, then all clients at once."""
    authority = Authority()
    names = [client.site.gateway for client in clients]

    async def start_client(client: Gateway, name: str) -> End:
        configuration = "\n".join(for_client(client, variant)).encode()
        identity = certificates(authority, authority.issue(name, "client"))
        return End(client.node, await start(client.node, {FILE: configuration + identity}, variant, cleanup))

    configuration = "\n".join(for_server(server, variant)).encode()
    identity = certificates(authority, authority.issue(server.site.gateway, "server"))
    addresses = {
        f"{CLIENTS}/{name}": "\n".join(address_of_client(client)).encode()
        for client, name in zip(clients, names, strict=True)
    }
    daemon = await start(server.node, {FILE: configuration + identity, **addresses}, variant, cleanup)
    client_ends = await asyncio.gather(*map(start_client, clients, names))
    daemons = [daemon, *(end.daemon for end in client_ends)]
    await all_print("Initialization Sequence Completed", daemons, READY_SECONDS)
    inside = server_inside(server)
    next_hop = {family: inside.address(family) for family in Family}
    for client in clients:
        via = next_hop if variant["device"] == "tap" else None
        await client.route_to_peer(cleanup, interface=device(variant), via=via)
    ends = [*client_ends, *(End(server.node, daemon, f"{name}/") for name in names)]

    async def read_all_back() -> ReadBack:
        return ReadBack.agreed([await read_back(end, variant) for end in ends])

    async def rekey() -> None:
        await use_keys_up([client.node for client in clients], inside.ipv4.ip, ends)

    return Established(
        wire=wire(server, variant),
        read_back=read_all_back,
        programs=daemons,
        facts=asked(variant),
        compresses=variant["compression"] != "none",
        rekey=rekey if renews_by_volume(variant) else None,
        rekey_refusal=rekey_refusal(variant),
        handshake_seconds=longest_handshake(daemons),
    )
