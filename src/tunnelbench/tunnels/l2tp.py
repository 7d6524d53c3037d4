"""L2TP: PPP in UDP datagrams (RFC 2661), by xl2tpd and pppd.

L2TP itself encrypts nothing; its suites are those of PPP. Once a session is there, packets stay in the kernel
(`data-plane=kernel`), or go through xl2tpd and a pseudo-terminal. There is no authentication of the L2TP
tunnel itself, only that of PPP.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

from tunnelbench.lab.features import Feature
from tunnelbench.lab.program import Program
from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead.layers import ipv4, l2tp, mppe, ppp, udp
from tunnelbench.tunnels import pppd
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Option,
    Place,
    ReadBack,
    Tunnel,
    Variant,
    options,
)
from tunnelbench.tunnels.daemons import all_print, place_files, printed, start_daemon
from tunnelbench.tunnels.point_to_point import INNER_ADDRESSES

DIRECTORY = "/run/xl2tpd"
PORT = 1701
READY_SECONDS = 20.0
"""How long a step may take; idle all take about a second together."""

DATA_PLANE = Option(
    "data-plane", ("kernel", "user-space"), "What moves packets between PPP and UDP: the kernel, or xl2tpd."
)

# The socket that pppd's plugin opens: AF_PPPOX, PX_PROTO_OL2TP.
_SOCKET = "import socket; socket.socket(24, socket.SOCK_DGRAM, 1)"
_KERNEL = Feature("PPP over L2TP", ("python3", "-c", _SOCKET))


class L2tp(Tunnel):
    """An L2TP session between the gateways, with PPP in it."""

    name = "l2tp"
    title = "L2TP"
    suites = pppd.MPPE_SUITES
    options = options(pppd.AUTHENTICATION, pppd.COMPRESSION, DATA_PLANE)

    def in_kernel(self, variant: Variant) -> bool:
        """With the kernel's data plane."""
        return variant["data-plane"] == "kernel"

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """What PPP can't do."""
        return pppd.refusal(variant)

    def needs(self, variant: Variant) -> Needs:
        """xl2tpd, pppd, and PPP in the kernel."""
        return needs(variant)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts xl2tpd on both gateways, then has the left one dial."""
        return await dial(left, right, variant, cleanup, frozenset({f"ipv4 udp {PORT}"}))

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """UDP, L2TP without optional fields, PPP with address and control."""
        encrypted = variant.suite.encrypts
        return Encapsulation(
            (ipv4(), udp(), l2tp(), ppp(), *((mppe(), ppp(address_and_control=False)) if encrypted else ())),
            inner_mtu=pppd.MTU - pppd.MPPE_ROOM * encrypted,
            compresses=variant["compression"] != "none",
        )


TUNNEL = L2tp()


def needs(variant: Variant) -> Needs:
    """xl2tpd, pppd, and PPP in the kernel; that of L2TP, too, unless a program moves the packets."""
    user_space = variant["data-plane"] == "user-space"
    features = pppd.features(variant, user_space=user_space)
    return Needs(frozenset({"xl2tpd", "pppd"}), features if user_space else features | {_KERNEL})


async def dial(
    client: Gateway, server: Gateway, variant: Variant, cleanup: AsyncExitStack, wire: frozenset[str]
) -> Established:
    """Brings a session up, with PPP in it and routes into that."""
    secret = pppd.Secret.fresh(client, str(INNER_ADDRESSES[0].ipv4.ip))
    daemons: list[Program] = []
    logs: list[Program] = []
    for end in (server, client):
        await pppd.place_secrets(end.node, [secret], cleanup)
        log = f"logfile {pppd.log_file(DIRECTORY)}"
        files = {
            "xl2tpd.conf": pppd.lines(_configuration(end, variant, server=end is server)),
            "options": pppd.lines([*pppd.options(variant, end, server=end is server), log]),
        }
        await place_files(end.node, DIRECTORY, files, cleanup)
        logs.append(await pppd.watch(end, DIRECTORY, cleanup))
        daemons.append(await start_daemon(end.node, cleanup, *_COMMAND))
    await all_print("Listening on IP address", daemons, READY_SECONDS)
    began = asyncio.get_running_loop().time()
    await client.node.run("tee", f"{DIRECTORY}/control", input=b"c tunnel")
    await all_print("Call established", daemons, READY_SECONDS)
    async with asyncio.TaskGroup() as waiting:
        for log in logs:
            waiting.create_task(pppd.wait_until_up(log, READY_SECONDS))
    handshake_seconds = asyncio.get_running_loop().time() - began
    guards = [await pppd.guard(end, cleanup) for end in (server, client)]
    for end in (server, client):
        await pppd.route(end, cleanup)

    async def read_back() -> ReadBack:
        return ReadBack.agreed(
            read_logs(printed(daemon), printed(log)) for daemon, log in zip(daemons, logs, strict=True)
        )

    return Established(
        wire=wire,
        read_back=read_back,
        programs=(*daemons, *guards),
        facts={**pppd.facts(variant), "data-plane": variant["data-plane"]},
        compresses=variant["compression"] != "none",
        handshake_seconds=handshake_seconds,
    )


def read_logs(xl2tpd: str, ppp_log: str) -> ReadBack:
    """What pppd's log says, and by what packets are moved as xl2tpd's says."""
    found = pppd.read_log(ppp_log)
    plane = "kernel" if "Using l2tp kernel support" in xl2tpd else "user-space"
    return ReadBack(found.suite, found.text, {**found.facts, "data-plane": plane})


_COMMAND = (
    *("xl2tpd", "-D", "-c", f"{DIRECTORY}/xl2tpd.conf", "-s", f"{DIRECTORY}/l2tp-secrets"),
    *("-p", f"{DIRECTORY}/xl2tpd.pid", "-C", f"{DIRECTORY}/control"),
)


def _configuration(end: Gateway, variant: Variant, *, server: bool) -> Iterator[str]:
    yield "[global]"
    yield f"listen-addr = {end.outside}"
    yield f"port = {PORT}"
    if variant["data-plane"] == "user-space":
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
