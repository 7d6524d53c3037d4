"""xl2tpd on gateways: L2TP sessions with PPP in them, for all VPNs that have one (RFC 2661).

A server has an LNS for each client, which it knows by its address on the wire.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import chain

from tunnelbench.lab.features import Feature, Needs
from tunnelbench.lab.program import Program
from tunnelbench.lab.together import together
from tunnelbench.overhead import Layer
from tunnelbench.overhead.layers import l2tp, udp
from tunnelbench.tunnels import ppp_links, pppd
from tunnelbench.tunnels.base import Gateway, Option, ReadBack
from tunnelbench.tunnels.daemons import all_print, place_files, printed, start_daemon
from tunnelbench.tunnels.ppp_links import Link

DIRECTORY = "/run/xl2tpd"
PORT = 1701
READY_SECONDS = 60.0
"""How long a step may take; idle all take half a second together, or three more where a first packet comes
before the other pppd listens. Dozens of clients, each a kernel, take as many seconds."""

DATA_PLANE = Option(
    "data-plane", ("kernel", "user-space"), "What moves packets between PPP and UDP: the kernel, or xl2tpd."
)

# The socket that pppd's plugin opens: AF_PPPOX, PX_PROTO_OL2TP.
_SOCKET = "import socket; socket.socket(24, socket.SOCK_DGRAM, 1)"
_KERNEL = Feature("PPP over L2TP", ("python3", "-c", _SOCKET))
_COMMAND = (
    *("xl2tpd", "-D", "-c", f"{DIRECTORY}/xl2tpd.conf", "-s", f"{DIRECTORY}/l2tp-secrets"),
    *("-p", f"{DIRECTORY}/xl2tpd.pid", "-C", f"{DIRECTORY}/control"),
)


@dataclass(frozen=True)
class End:
    """One end of a session: xl2tpd, and what its pppd says."""

    daemon: Program
    log: Program

    def read_back(self) -> ReadBack:
        """What both say."""
        return read_logs(printed(self.daemon), printed(self.log))


@dataclass(frozen=True)
class Sessions:
    """L2TP sessions that are up, with PPP in them."""

    ends: Sequence[End]
    guards: Sequence[Program]
    """Programs that end when a pppd does."""
    handshake_seconds: float
    """From a client's first message until PPP has its addresses at both ends, the longest of all clients."""

    @property
    def programs(self) -> Sequence[Program]:
        """All that must live."""
        return (*dict.fromkeys(end.daemon for end in self.ends), *self.guards)

    def read_back(self) -> ReadBack:
        """What all ends say."""
        return ReadBack.agreed(end.read_back() for end in self.ends)


def needs(negotiation: pppd.Negotiation, data_plane: str) -> Needs:
    """xl2tpd, pppd, and PPP in the kernel; that of L2TP, too, unless a program moves the packets."""
    user_space = data_plane == "user-space"
    features = negotiation.features(user_space=user_space)
    return Needs(frozenset({"xl2tpd", "pppd"}), features if user_space else features | {_KERNEL})


def layers(negotiation: pppd.Negotiation) -> tuple[Layer, ...]:
    """UDP, L2TP without optional fields, and PPP."""
    return (udp(), l2tp(), *negotiation.layers)


async def dial(
    links: Sequence[Link], negotiation: pppd.Negotiation, data_plane: str, cleanup: AsyncExitStack
) -> Sessions:
    """Starts xl2tpd at all ends, has all clients dial at once, and leads traffic into PPP."""
    at_server = await _start_server(links, negotiation, data_plane, cleanup)
    at_clients = await together(*(_start_client(link, negotiation, data_plane, cleanup) for link in links))
    daemons = [at_server[0].daemon, *(end.daemon for end in at_clients)]
    await all_print("Listening on IP address", daemons, READY_SECONDS)
    dialled = (_dial(*ends) for ends in zip(links, at_clients, at_server, strict=True))
    handshakes = await together(*dialled)
    guards = await together(*(link.guards(cleanup) for link in links))
    await ppp_links.route(links, daemons[0], READY_SECONDS, cleanup)
    return Sessions([*at_server, *at_clients], [*chain.from_iterable(guards)], max(handshakes))


def read_logs(xl2tpd: str, ppp: str) -> ReadBack:
    """What pppd's log says, and by what packets are moved as xl2tpd's says."""
    found = pppd.read_log(ppp)
    plane = "kernel" if "Using l2tp kernel support" in xl2tpd else "user-space"
    return ReadBack(found.suite, found.text, {**found.facts, "data-plane": plane})


async def _start_server(
    links: Sequence[Link], negotiation: pppd.Negotiation, data_plane: str, cleanup: AsyncExitStack
) -> Sequence[End]:
    """The ends of all links in their order."""
    server = links[0].server
    await pppd.place_secrets(server.node, [link.secret for link in links], cleanup)
    files = {"xl2tpd.conf": pppd.lines(_configuration_of_server(server, links, data_plane))} | {
        f"{link.name}.options": pppd.lines(link.options_of_server(negotiation, DIRECTORY)) for link in links
    }
    await place_files(server.node, DIRECTORY, files, cleanup)
    logs = [await pppd.watch(server, DIRECTORY, cleanup, link.name) for link in links]
    daemon = await start_daemon(server.node, cleanup, *_COMMAND)
    return [End(daemon, log) for log in logs]


async def _start_client(
    link: Link, negotiation: pppd.Negotiation, data_plane: str, cleanup: AsyncExitStack
) -> End:
    client = link.client
    await pppd.place_secrets(client.node, [link.secret], cleanup)
    options = (*pppd.options(negotiation, client, server=False), f"logfile {pppd.log_file(DIRECTORY)}")
    files = {
        "xl2tpd.conf": pppd.lines(_configuration_of_client(client, data_plane)),
        "options": pppd.lines(options),
    }
    await place_files(client.node, DIRECTORY, files, cleanup)
    log = await pppd.watch(client, DIRECTORY, cleanup)
    return End(await start_daemon(client.node, cleanup, *_COMMAND), log)


async def _dial(link: Link, at_client: End, at_server: End) -> float:
    """Has a client dial; returns the seconds until PPP has its addresses at both ends."""
    began = asyncio.get_running_loop().time()
    await link.client.node.run("tee", f"{DIRECTORY}/control", input=b"c tunnel")
    for end, peer in ((at_client, link.client.peer_outside), (at_server, link.client.outside)):
        await end.daemon.line(rf"Call established with {re.escape(str(peer))},", READY_SECONDS)
    for end in (at_server, at_client):
        await pppd.wait_until_up(end.log, READY_SECONDS)
    return asyncio.get_running_loop().time() - began


def _configuration_of_server(server: Gateway, links: Sequence[Link], data_plane: str) -> Iterator[str]:
    yield from _global(server, data_plane)
    for link in links:
        yield f"[lns {link.name}]"
        yield f"lac = {link.client.outside}"
        # The address of each client stands with its password.
        yield "assign ip = no"
        yield f"local ip = {ppp_links.SERVER_ADDRESS}"
        yield f"name = {server.site.gateway}"
        yield f"pppoptfile = {DIRECTORY}/{link.name}.options"


def _configuration_of_client(client: Gateway, data_plane: str) -> Iterator[str]:
    yield from _global(client, data_plane)
    yield "[lac tunnel]"
    yield f"lns = {client.peer_outside}"
    yield f"name = {client.site.gateway}"
    yield f"pppoptfile = {DIRECTORY}/options"


def _global(end: Gateway, data_plane: str) -> Iterator[str]:
    yield "[global]"
    yield f"listen-addr = {end.outside}"
    yield f"port = {PORT}"
    if data_plane == "user-space":
        yield "force userspace = yes"
