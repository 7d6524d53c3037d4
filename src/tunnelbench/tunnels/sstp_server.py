"""sstp-server on a gateway: its suites, its files, one pppd for each client, and what it says of TLS."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.lab.program import Program
from tunnelbench.tunnels import ppp_links, pppd
from tunnelbench.tunnels.base import Gateway, ReadBack, Suite, suites
from tunnelbench.tunnels.certificates import Authority
from tunnelbench.tunnels.daemons import place_files, start_daemon
from tunnelbench.tunnels.ppp_links import Link

DIRECTORY = "/run/sstp"
PORT = 443
READY_SECONDS = 40.0
"""How long a step may take; idle all take about four together."""


@dataclass(frozen=True)
class TlsSuite(Suite):
    """A suite, and what OpenSSL calls it."""

    openssl: str
    version: str
    """Of TLS: `1.2` or `1.3`."""


SUITES = suites(
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


async def start_server(
    links: Sequence[Link],
    suite: TlsSuite,
    negotiation: pppd.Negotiation,
    authority: Authority,
    cleanup: AsyncExitStack,
) -> tuple[Program, Sequence[Program]]:
    """The server once it listens, and what its pppd will say of each link."""
    end = links[0].server
    await pppd.place_secrets(end.node, [link.secret for link in links], cleanup)
    await place_files(end.node, DIRECTORY, _server_files(links, suite, negotiation, authority), cleanup)
    await end.node.write_file(_PPPD, _PPPD_OF_CLIENT, 0o700)
    logs = [await pppd.watch(end, DIRECTORY, cleanup, link.name) for link in links]
    command = _server_command(end, suite)
    server = await start_daemon(end.node, cleanup, *command, environment=_ENVIRONMENT)
    await server.line("Listening on", READY_SECONDS)
    return server, logs


def read_ciphers(server: str, ppp: ReadBack, clients: int = 1) -> ReadBack:
    """The suite that the server's TLS says is in use with so many clients, beside what PPP says."""
    said = [line for line in server.splitlines() if " cipher " in line]
    in_use = set(said) if len(said) >= clients else set[str]()
    version, _, name = in_use.pop().partition(" cipher ") if len(in_use) == 1 else ("", "", "")
    suite = next((suite.name for suite in SUITES.values() if as_tls(suite).openssl == name), None)
    return ReadBack(
        suite if ppp.suite == "none" else None,
        "\n".join([*said, ppp.text]),
        {**ppp.facts, "TLS version": version.removeprefix("TLSv")},
    )


def as_tls(suite: Suite) -> TlsSuite:
    """A suite of ours, as that."""
    assert isinstance(suite, TlsSuite)
    return suite


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


def _server_files(
    links: Sequence[Link], suite: TlsSuite, negotiation: pppd.Negotiation, authority: Authority
) -> dict[str, bytes]:
    # The client looks for the address that it connects to.
    identity = authority.issue(str(links[0].server.outside), "server")
    options = {
        str(link.client.outside): pppd.lines([*link.options_of_server(negotiation, DIRECTORY), pppd.NO_LOCK])
        for link in links
    }
    return {
        "server.py": _SERVER.encode(),
        "certificate.pem": identity.certificate,
        "key.pem": identity.key,
        "openssl.cnf": pppd.lines(_openssl_configuration(suite)),
        **options,
    }


def _openssl_configuration(suite: TlsSuite) -> Iterator[str]:
    yield from ("openssl_conf = all", "[all]", "ssl_conf = tls", "[tls]", "system_default = defaults")
    yield "[defaults]"
    yield "MaxProtocol = TLSv1.2" if suite.version == "1.2" else f"Ciphersuites = {suite.openssl}"
