"""SSTP: PPP in TLS (MS-SSTP), by sstp-server and sstp-client, each with pppd.

TLS goes over TCP port 443, in its newest version that has the suite: 1.3 for most AEADs, else 1.2. The client
makes sure of the server's certificate, and both of each other by MS-CHAPv2, whose keys are bound to TLS. So
there is no choice of authentication. Packets go through pppd's pseudo-terminal at both ends, and in TLS each
is a record of its own.

SoftEther's server would be another one: that of Debian 11 and 12 refuses all SSTP, by a fault that was
repaired soon after (it looks for the protocol by name, and never takes what it finds).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack

from tunnelbench.lab.program import Program
from tunnelbench.lab.together import together
from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead.layers import header, ipv4, tcp, tls_record
from tunnelbench.tunnels import ppp_links, pppd
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Place,
    ReadBack,
    Tunnel,
    Variant,
    options,
)
from tunnelbench.tunnels.certificates import Authority
from tunnelbench.tunnels.daemons import place_files, printed, start_daemon
from tunnelbench.tunnels.ppp_links import Link
from tunnelbench.tunnels.sstp_server import (
    DIRECTORY,
    PORT,
    READY_SECONDS,
    SUITES,
    as_tls,
    read_ciphers,
    start_server,
)

_SOCKETS = "/run/sstpc"
"""Where sstpc listens for pppd; compiled into it."""


class Sstp(Tunnel):
    """An SSTP session between the gateways, with PPP in it."""

    name = "sstp"
    title = "SSTP"
    suites = SUITES
    options = options(pppd.COMPRESSION)
    topologies = frozenset({"site-to-site", "host-to-host", "remote-access"})

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """The releases that lack one of the programs."""
        if place.release == "bullseye":
            return "Debian bullseye has no sstp-client; trixie has what SSTP needs"
        if place.release == "bookworm":
            return "sstp-server needs Python 3.12 or newer, bookworm has 3.11; trixie has what SSTP needs"
        return None

    def needs(self, variant: Variant) -> Needs:
        """Both programs, pppd, and PPP in the kernel."""
        return Needs(frozenset({"sstpd", "sstpc", "pppd"}), _negotiation(variant).features(user_space=True))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts sstp-server on the right gateway, then pppd with sstpc on the left one."""
        return await _connect([ppp_links.between_sites(left, right)], variant, cleanup)

    async def serve(
        self, server: Gateway, clients: Sequence[Gateway], variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts sstp-server, then pppd with sstpc on all clients, who are given their inside addresses."""
        return await _connect(ppp_links.of_clients(server, clients), variant, cleanup)

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """A record of TLS for each frame of PPP."""
        suite, negotiation = as_tls(variant.suite), _negotiation(variant)
        record = tls_record(suite.encryption, suite.integrity, suite.version)
        return Encapsulation(
            (ipv4(), tcp(), record, header("SSTP", "MS-SSTP", 4), *negotiation.layers),
            inner_mtu=negotiation.mtu,
            compresses=negotiation.compression != "none",
        )


TUNNEL = Sstp()


async def _connect(links: Sequence[Link], variant: Variant, cleanup: AsyncExitStack) -> Established:
    authority, negotiation = Authority(), _negotiation(variant)
    server, server_logs = await start_server(links, as_tls(variant.suite), negotiation, authority, cleanup)
    calls = (
        _call(link, variant, authority, server, log, cleanup)
        for link, log in zip(links, server_logs, strict=True)
    )
    called = await together(*calls)
    clients = [client for client, _ in called]
    guards = [await pppd.guard(link.server, link.server_interface, cleanup) for link in links]
    await ppp_links.route(links, server, READY_SECONDS, cleanup)

    async def read_back() -> ReadBack:
        ppp = ReadBack.agreed(pppd.read_log(printed(log)) for log in (*clients, *server_logs))
        return read_ciphers(printed(server), ppp, len(links))

    return Established(
        wire=frozenset({f"ipv4 tcp {PORT}"}),
        read_back=read_back,
        programs=(*clients, server, *guards),
        facts={**negotiation.facts, "TLS version": as_tls(variant.suite).version},
        compresses=negotiation.compression != "none",
        rekey_refusal="sstp-client takes no order for them",
        handshake_seconds=max(seconds for _, seconds in called),
    )


async def _call(
    link: Link,
    variant: Variant,
    authority: Authority,
    server: Program,
    server_log: Program,
    cleanup: AsyncExitStack,
) -> tuple[Program, float]:
    """Has a client call; returns its pppd, and the seconds until packets go through."""
    node = link.client.node
    files = {
        "authority.pem": authority.certificate,
        "options": pppd.lines(_client_options(link.client, variant)),
    }
    await pppd.place_secrets(node, [link.secret], cleanup)
    await place_files(node, DIRECTORY, files, cleanup)
    await place_files(node, _SOCKETS, {}, cleanup)
    began = asyncio.get_running_loop().time()
    client = await start_daemon(node, cleanup, "pppd", "file", f"{DIRECTORY}/options")
    for log in (client, server_log):
        await pppd.wait_until_up(log, READY_SECONDS)
    # Until the client has bound its keys to TLS, packets are dropped.
    await server.line(rf"/{re.escape(str(link.client.outside))}:\d+\] Connection established", READY_SECONDS)
    return client, asyncio.get_running_loop().time() - began


def _negotiation(variant: Variant) -> pppd.Negotiation:
    return pppd.Negotiation(compression=variant["compression"])


def _client_options(end: Gateway, variant: Variant) -> Iterator[str]:
    yield from pppd.options(_negotiation(variant), end, server=False)
    yield pppd.NO_LOCK
    yield "plugin sstp-pppd-plugin.so"
    yield f"sstp-sock {_SOCKETS}/sstpc-tunnel"
    connect = f"--nolaunchpppd --ipparam tunnel --ca-cert {DIRECTORY}/authority.pem --log-stderr"
    yield f'pty "sstpc {connect} {end.peer_outside}"'
    yield "nodetach"
