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
from dataclasses import dataclass

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
    Suite,
    Tunnel,
    Variant,
    options,
    suites,
)
from tunnelbench.tunnels.certificates import Authority
from tunnelbench.tunnels.daemons import place_files, printed, start_daemon
from tunnelbench.tunnels.ppp_links import Link

DIRECTORY = "/run/sstp"
SOCKETS = "/run/sstpc"
"""Where sstpc listens for pppd; compiled into it."""
PORT = 443
READY_SECONDS = 40.0
"""How long a step may take; idle all take about four together."""


@dataclass(frozen=True)
class TlsSuite(Suite):
    """A suite, and what OpenSSL calls it."""

    openssl: str
    version: str
    """Of TLS: `1.2` or `1.3`."""


_SUITES = suites(
    TlsSuite("aes128-sha1", "AES-128-CBC", "HMAC-SHA-1", "ECDHE-ECDSA-AES128-SHA", "1.2"),
    TlsSuite("aes256-sha1", "AES-256-CBC", "HMAC-SHA-1", "ECDHE-ECDSA-AES256-SHA", "1.2"),
    TlsSuite("aes128-sha256", "AES-128-CBC", "HMAC-SHA-256", "ECDHE-ECDSA-AES128-SHA256", "1.2"),
    TlsSuite("aes256-sha384", "AES-256-CBC", "HMAC-SHA-384", "ECDHE-ECDSA-AES256-SHA384", "1.2"),
    TlsSuite("aes128-gcm", "AES-128-GCM", "with the cipher", "TLS_AES_128_GCM_SHA256", "1.3"),
    TlsSuite("aes256-gcm", "AES-256-GCM", "with the cipher", "TLS_AES_256_GCM_SHA384", "1.3"),
    TlsSuite(
        *("chacha20-poly1305", "ChaCha20-Poly1305", "with the cipher", "TLS_CHACHA20_POLY1305_SHA256", "1.3")
    ),
)

# sstp-server itself does not say what cipher TLS uses. And pppd's plugin hands it 20 bytes of each key, of
# which MS-CHAPv2 has 16 (RFC 3079); with more it would take every client for a stranger.
_SERVER = """\
import sstpd
from sstpd.sstp import SSTPProtocol

accept = SSTPProtocol.connection_made
take_keys = SSTPProtocol.higher_layer_authentication_key_received


def say_cipher(self, transport):
    tls = transport.get_extra_info("ssl_object")
    print(f"{tls.version()} cipher {tls.cipher()[0]}", flush=True)
    accept(self, transport)


def cut_keys(self, send_key, receive_key):
    take_keys(self, send_key[:16], receive_key[:16])


SSTPProtocol.connection_made = say_cipher
SSTPProtocol.higher_layer_authentication_key_received = cut_keys
sstpd.run()
"""


class Sstp(Tunnel):
    """An SSTP session between the gateways, with PPP in it."""

    name = "sstp"
    title = "SSTP"
    suites = _SUITES
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
        suite, negotiation = _as_tls(variant.suite), _negotiation(variant)
        record = tls_record(suite.encryption, suite.integrity, suite.version)
        return Encapsulation(
            (ipv4(), tcp(), record, header("SSTP", "MS-SSTP", 4), *negotiation.layers),
            inner_mtu=negotiation.mtu,
            compresses=negotiation.compression != "none",
        )


TUNNEL = Sstp()


async def _connect(links: Sequence[Link], variant: Variant, cleanup: AsyncExitStack) -> Established:
    authority, negotiation = Authority(), _negotiation(variant)
    server, server_logs = await _start_server(links, variant, authority, cleanup)
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
        facts={**negotiation.facts, "TLS version": _as_tls(variant.suite).version},
        compresses=negotiation.compression != "none",
        handshake_seconds=max(seconds for _, seconds in called),
    )


async def _start_server(
    links: Sequence[Link], variant: Variant, authority: Authority, cleanup: AsyncExitStack
) -> tuple[Program, Sequence[Program]]:
    """The server once it listens, and what its pppd will say of each link."""
    end = links[0].server
    await pppd.place_secrets(end.node, [link.secret for link in links], cleanup)
    await place_files(end.node, DIRECTORY, _server_files(links, variant, authority), cleanup)
    await end.node.write_file(_PPPD, _PPPD_OF_CLIENT, 0o700)
    logs = [await pppd.watch(end, DIRECTORY, cleanup, link.name) for link in links]
    command = _server_command(end, _as_tls(variant.suite))
    server = await start_daemon(end.node, cleanup, *command, environment=_ENVIRONMENT)
    await server.line("Listening on", READY_SECONDS)
    return server, logs


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
    await place_files(node, SOCKETS, {}, cleanup)
    began = asyncio.get_running_loop().time()
    client = await start_daemon(node, cleanup, "pppd", "file", f"{DIRECTORY}/options")
    for log in (client, server_log):
        await pppd.wait_until_up(log, READY_SECONDS)
    # Until the client has bound its keys to TLS, packets are dropped.
    await server.line(rf"/{re.escape(str(link.client.outside))}:\d+\] Connection established", READY_SECONDS)
    return client, asyncio.get_running_loop().time() - began


def _as_tls(suite: Suite) -> TlsSuite:
    assert isinstance(suite, TlsSuite)
    return suite


def _negotiation(variant: Variant) -> pppd.Negotiation:
    return pppd.Negotiation(compression=variant["compression"])


_PPPD = f"{DIRECTORY}/pppd"
_PPPD_OF_CLIENT = f"""\
#!/bin/sh
exec /usr/sbin/pppd "$@" ${{SSTP_REMOTE_HOST:+file {DIRECTORY}/$SSTP_REMOTE_HOST}}
""".encode()
"""The server has one file of options for all clients; here each has one of its own, named by its address."""

_ENVIRONMENT = {"OPENSSL_CONF": f"{DIRECTORY}/openssl.cnf", "TMPDIR": DIRECTORY}


def _server_command(end: Gateway, suite: TlsSuite) -> tuple[str, ...]:
    # This list is for TLS 1.2; that for 1.3 stands in OpenSSL's configuration.
    ciphers = ("--ciphers", suite.openssl) if suite.version == "1.2" else ()
    return (
        *("python3", f"{DIRECTORY}/server.py", "--listen", str(end.outside), "--listen-port", str(PORT)),
        *("--pem-cert", f"{DIRECTORY}/certificate.pem", "--pem-key", f"{DIRECTORY}/key.pem"),
        *("--pppd", _PPPD, "--pppd-config", "/dev/null", "--local", ppp_links.SERVER_ADDRESS, *ciphers),
    )


def _server_files(links: Sequence[Link], variant: Variant, authority: Authority) -> dict[str, bytes]:
    # The client looks for the address that it connects to.
    identity = authority.issue(str(links[0].server.outside), "server")
    negotiation = _negotiation(variant)
    options = {
        str(link.client.outside): pppd.lines([*link.options_of_server(negotiation, DIRECTORY), pppd.NO_LOCK])
        for link in links
    }
    return {
        "server.py": _SERVER.encode(),
        "certificate.pem": identity.certificate,
        "key.pem": identity.key,
        "openssl.cnf": pppd.lines(_openssl_configuration(_as_tls(variant.suite))),
        **options,
    }


def _openssl_configuration(suite: TlsSuite) -> Iterator[str]:
    yield from ("openssl_conf = all", "[all]", "ssl_conf = tls", "[tls]", "system_default = defaults")
    yield "[defaults]"
    yield "MaxProtocol = TLSv1.2" if suite.version == "1.2" else f"Ciphersuites = {suite.openssl}"


def _client_options(end: Gateway, variant: Variant) -> Iterator[str]:
    yield from pppd.options(_negotiation(variant), end, server=False)
    yield pppd.NO_LOCK
    yield "plugin sstp-pppd-plugin.so"
    yield f"sstp-sock {SOCKETS}/sstpc-tunnel"
    connect = f"--nolaunchpppd --ipparam tunnel --ca-cert {DIRECTORY}/authority.pem --log-stderr"
    yield f'pty "sstpc {connect} {end.peer_outside}"'
    yield "nodetach"


def read_ciphers(server: str, ppp: ReadBack, clients: int = 1) -> ReadBack:
    """The suite that the server's TLS says is in use with so many clients, beside what PPP says."""
    said = [line for line in server.splitlines() if " cipher " in line]
    in_use = set(said) if len(said) >= clients else set[str]()
    version, _, name = in_use.pop().partition(" cipher ") if len(in_use) == 1 else ("", "", "")
    suite = next((suite.name for suite in _SUITES.values() if _as_tls(suite).openssl == name), None)
    return ReadBack(
        suite if ppp.suite == "none" else None,
        "\n".join([*said, ppp.text]),
        {**ppp.facts, "TLS version": version.removeprefix("TLSv")},
    )
