"""xl2tpd on two gateways: an L2TP session with PPP in it, for all VPNs that have one (RFC 2661)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.lab.features import Feature, Needs
from tunnelbench.lab.program import Program
from tunnelbench.overhead import Layer
from tunnelbench.overhead.layers import l2tp, udp
from tunnelbench.tunnels import pppd
from tunnelbench.tunnels.base import Gateway, Option, ReadBack
from tunnelbench.tunnels.daemons import all_print, place_files, printed, start_daemon
from tunnelbench.tunnels.point_to_point import INNER_ADDRESSES

DIRECTORY = "/run/xl2tpd"
PORT = 1701
READY_SECONDS = 20.0
"""How long a step may take; idle all take half a second together, or three more where a first packet comes
before the other pppd listens."""

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
class Session:
    """An L2TP session that is up, with PPP in it."""

    daemons: Sequence[Program]
    logs: Sequence[Program]
    """What pppd says, in the same order."""
    guards: Sequence[Program]
    """Programs that end when a pppd does."""
    handshake_seconds: float
    """From the first message until PPP has its addresses at both ends."""

    @property
    def programs(self) -> Sequence[Program]:
        """All that must live."""
        return (*self.daemons, *self.guards)

    def read_back(self) -> ReadBack:
        """What both ends say."""
        ends = zip(self.daemons, self.logs, strict=True)
        return ReadBack.agreed(read_logs(printed(daemon), printed(log)) for daemon, log in ends)


def needs(negotiation: pppd.Negotiation, data_plane: str) -> Needs:
    """xl2tpd, pppd, and PPP in the kernel; that of L2TP, too, unless a program moves the packets."""
    user_space = data_plane == "user-space"
    features = negotiation.features(user_space=user_space)
    return Needs(frozenset({"xl2tpd", "pppd"}), features if user_space else features | {_KERNEL})


def layers(negotiation: pppd.Negotiation) -> tuple[Layer, ...]:
    """UDP, L2TP without optional fields, and PPP."""
    return (udp(), l2tp(), *negotiation.layers)


async def dial(
    client: Gateway,
    server: Gateway,
    negotiation: pppd.Negotiation,
    data_plane: str,
    cleanup: AsyncExitStack,
) -> Session:
    """Starts xl2tpd at both ends, has the client dial, and routes both sites over PPP."""
    secret = pppd.Secret.fresh(client, str(INNER_ADDRESSES[0].ipv4.ip))
    daemons: list[Program] = []
    logs: list[Program] = []
    for end in (server, client):
        await pppd.place_secrets(end.node, [secret], cleanup)
        log = f"logfile {pppd.log_file(DIRECTORY)}"
        files = {
            "xl2tpd.conf": pppd.lines(_configuration(end, data_plane, server=end is server)),
            "options": pppd.lines([*pppd.options(negotiation, end, server=end is server), log]),
        }
        await place_files(end.node, DIRECTORY, files, cleanup)
        logs.append(await pppd.watch(end, DIRECTORY, cleanup))
        daemons.append(await start_daemon(end.node, cleanup, *_COMMAND))
    await all_print("Listening on IP address", daemons, READY_SECONDS)
    began = asyncio.get_running_loop().time()
    await client.node.run("tee", f"{DIRECTORY}/control", input=b"c tunnel")
    await all_print("Call established", daemons, READY_SECONDS)
    for log in logs:
        await pppd.wait_until_up(log, READY_SECONDS)
    handshake_seconds = asyncio.get_running_loop().time() - began
    guards = [await pppd.guard(end, cleanup) for end in (server, client)]
    for end in (server, client):
        await end.route_to_peer(cleanup, interface=pppd.INTERFACE)
    return Session(daemons, logs, guards, handshake_seconds)


def read_logs(xl2tpd: str, ppp: str) -> ReadBack:
    """What pppd's log says, and by what packets are moved as xl2tpd's says."""
    found = pppd.read_log(ppp)
    plane = "kernel" if "Using l2tp kernel support" in xl2tpd else "user-space"
    return ReadBack(found.suite, found.text, {**found.facts, "data-plane": plane})


def _configuration(end: Gateway, data_plane: str, *, server: bool) -> Iterator[str]:
    yield "[global]"
    yield f"listen-addr = {end.outside}"
    yield f"port = {PORT}"
    if data_plane == "user-space":
        yield "force userspace = yes"
    if server:
        yield "[lns default]"
        # The address of each client stands with its password.
        yield "assign ip = no"
        yield f"local ip = {INNER_ADDRESSES[1].ipv4.ip}"
    else:
        yield "[lac tunnel]"
        yield f"lns = {end.peer_outside}"
    yield f"name = {end.site.gateway}"
    yield f"pppoptfile = {DIRECTORY}/options"
