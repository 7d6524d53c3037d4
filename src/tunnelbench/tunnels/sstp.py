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
from collections.abc import Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead.layers import header, ipv4, tcp, tls_record
from tunnelbench.tunnels import pppd
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
from tunnelbench.tunnels.point_to_point import INNER_ADDRESSES

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
        suite, authority = _as_tls(variant.suite), Authority()
        secret = pppd.Secret.fresh(left, str(INNER_ADDRESSES[0].ipv4.ip))
        for end in (right, left):
            await pppd.place_secrets(end.node, [secret], cleanup)
        await place_files(right.node, DIRECTORY, _server_files(right, variant, authority), cleanup)
        server_log = await pppd.watch(right, DIRECTORY, cleanup)
        server = await start_daemon(
            right.node, cleanup, *_server_command(right, suite), environment=_ENVIRONMENT
        )
        await server.line("Listening on", READY_SECONDS)
        files = {
            "authority.pem": authority.certificate,
            "options": pppd.lines(_client_options(left, variant)),
        }
        await place_files(left.node, DIRECTORY, files, cleanup)
        await place_files(left.node, SOCKETS, {}, cleanup)
        began = asyncio.get_running_loop().time()
        client = await start_daemon(left.node, cleanup, "pppd", "file", f"{DIRECTORY}/options")
        for log in (client, server_log):
            await pppd.wait_until_up(log, READY_SECONDS)
        # Until the client has bound its keys to TLS, packets are dropped.
        await server.line("Connection established", READY_SECONDS)
        handshake_seconds = asyncio.get_running_loop().time() - began
        session = await pppd.guard(right, cleanup)
        for end in (left, right):
            await end.route_to_peer(cleanup, interface=pppd.INTERFACE)

        async def read_back() -> ReadBack:
            ppp = ReadBack.agreed(pppd.read_log(printed(log)) for log in (client, server_log))
            return read_cipher(printed(server), ppp)

        negotiation = _negotiation(variant)
        return Established(
            wire=frozenset({f"ipv4 tcp {PORT}"}),
            read_back=read_back,
            programs=(client, server, session),
            facts={**negotiation.facts, "TLS version": suite.version},
            compresses=negotiation.compression != "none",
            handshake_seconds=handshake_seconds,
        )

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


def _as_tls(suite: Suite) -> TlsSuite:
    assert isinstance(suite, TlsSuite)
    return suite


def _negotiation(variant: Variant) -> pppd.Negotiation:
    return pppd.Negotiation(compression=variant["compression"])


_ENVIRONMENT = {"OPENSSL_CONF": f"{DIRECTORY}/openssl.cnf", "TMPDIR": DIRECTORY}


def _server_command(end: Gateway, suite: TlsSuite) -> tuple[str, ...]:
    # This list is for TLS 1.2; that for 1.3 stands in OpenSSL's configuration.
    ciphers = ("--ciphers", suite.openssl) if suite.version == "1.2" else ()
    return (
        *("python3", f"{DIRECTORY}/server.py", "--listen", str(end.outside), "--listen-port", str(PORT)),
        *("--pem-cert", f"{DIRECTORY}/certificate.pem", "--pem-key", f"{DIRECTORY}/key.pem"),
        *("--pppd-config", f"{DIRECTORY}/options", "--local", str(INNER_ADDRESSES[1].ipv4.ip), *ciphers),
    )


def _server_files(end: Gateway, variant: Variant, authority: Authority) -> dict[str, bytes]:
    # The client looks for the address that it connects to.
    identity = authority.issue(str(end.outside), "server")
    log = f"logfile {pppd.log_file(DIRECTORY)}"
    return {
        "server.py": _SERVER.encode(),
        "certificate.pem": identity.certificate,
        "key.pem": identity.key,
        "openssl.cnf": pppd.lines(_openssl_configuration(_as_tls(variant.suite))),
        "options": pppd.lines([*pppd.options(_negotiation(variant), end, server=True), pppd.NO_LOCK, log]),
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


def read_cipher(server: str, ppp: ReadBack) -> ReadBack:
    """The suite that the server's TLS says is in use with its newest client, beside what PPP says."""
    said = [line for line in server.splitlines() if " cipher " in line][-1:]
    version, _, name = said[0].partition(" cipher ") if said else ("", "", "")
    suite = next((suite.name for suite in _SUITES.values() if _as_tls(suite).openssl == name), None)
    return ReadBack(
        suite if ppp.suite == "none" else None,
        "\n".join([*said, ppp.text]),
        {**ppp.facts, "TLS version": version.removeprefix("TLSv")},
    )
