"""What the VPNs made of OpenSSH have in common: their suites, keys and configuration, and the connection.

A client on the left gateway is logged in by key as root to a server on the right one. Both accept one cipher
and one MAC (RFC 4253, RFC 4344 for CTR, RFC 6668 for SHA-256; the AEADs are OpenSSH's own). Key exchange, new
keys after so many bytes (RFC 4344) and all else are OpenSSH's defaults; nothing is compressed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.features import Feature
from tunnelbench.lab.program import Program
from tunnelbench.tunnels.base import Gateway, Needs, ReadBack, Suite
from tunnelbench.tunnels.daemons import place_files, printed, start_daemon

DIRECTORY = "/run/openssh"
PORT = 22
WIRE = frozenset({f"ipv4 tcp {PORT}"})
READY_SECONDS = 20.0
"""How long each end may take; idle they take less than half a second together."""

_CIPHERS = {
    "aes128-cbc": "AES-128-CBC",
    "aes192-cbc": "AES-192-CBC",
    "aes256-cbc": "AES-256-CBC",
    "3des-cbc": "3DES-CBC",
    "aes128-ctr": "AES-128-CTR",
    "aes256-ctr": "AES-256-CTR",
}
_MACS = {
    "md5": ("hmac-md5", "HMAC-MD5"),
    "sha1": ("hmac-sha1", "HMAC-SHA-1"),
    "sha256": ("hmac-sha2-256", "HMAC-SHA-256"),
}
_AEADS = {
    "aes128-gcm": "AES-128-GCM",
    "aes256-gcm": "AES-256-GCM",
    "chacha20-poly1305": "ChaCha20-Poly1305",
}
_IMPLICIT = "<implicit>"
_NEGOTIATED = re.compile(r"^debug1: kex: (server->client|client->server) cipher: (\S+) MAC: (\S+).*", re.M)

# Before sshd talks to strangers it becomes a user of its own. Whoever runs a lab as an ordinary user has only
# one identity to give unless the system grants more.
_SECOND_USER = Feature(
    "a second user for sshd (subuid(5) grants some)",
    ("setpriv", "--reuid", "sshd", "--regid", "nogroup", "--clear-groups", "true"),
)


@dataclass(frozen=True)
class SshSuite(Suite):
    """A suite, and what OpenSSH calls its parts."""

    cipher: str
    """For `Ciphers`."""
    mac: str | None
    """For `MACs`; None for an AEAD, which needs none."""

    @property
    def options(self) -> Sequence[str]:
        """What leaves either end nothing else to negotiate (ssh_config(5), sshd_config(5))."""
        return (f"Ciphers {self.cipher}", *([f"MACs {self.mac}"] if self.mac else []))


def all_suites() -> list[SshSuite]:
    """Every suite that OpenSSH can be asked for."""
    classic = [
        SshSuite(f"{cipher}-{name}", encryption, integrity, cipher, mac)
        for cipher, encryption in _CIPHERS.items()
        for name, (mac, integrity) in _MACS.items()
    ]
    combined = [
        SshSuite(name, encryption, "with the cipher", f"{name}@openssh.com", None)
        for name, encryption in _AEADS.items()
    ]
    return classic + combined


def ssh_needs(suite: Suite, *features: Feature) -> Needs:
    """OpenSSH with the suite's cipher and MAC, and what else there must be."""
    options = _as_ssh(suite).options
    check = ("ssh", "-G", "-F", "none", *(f"-o{option}" for option in options), "localhost")
    has_suite = Feature(f"OpenSSH with {', '.join(options)}", check, user_space=True)
    return Needs(frozenset({"ssh", "sshd"}), frozenset({has_suite, _SECOND_USER, *features}))


@dataclass(frozen=True)
class Connection:
    """A client that is logged in, and the server that it is logged in to."""

    client: Program
    server: Program

    @property
    def programs(self) -> Sequence[Program]:
        """Both, client first."""
        return (self.client, self.server)

    async def read_back(self) -> ReadBack:
        """The suite of the newest keys, as the client says."""
        return read_log(printed(self.client))


async def connect(
    left: Gateway,
    right: Gateway,
    suite: Suite,
    client_options: Sequence[str],
    ready: str,
    cleanup: AsyncExitStack,
) -> Connection:
    """Starts a server on the right gateway, and on the left one a client with some more options.

    Returns when the client has logged a line in which the regular expression `ready` is found. Raises
    NodeError, with the last lines of either's log, when it ends or takes too long before.
    """
    server_key, client_key = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    negotiable = _as_ssh(suite).options
    server_files = {
        "sshd_config": _lines(*_server_options(right), *negotiable),
        "host_key": _private(server_key),
        "authorized_keys": _lines(_public(client_key)),
    }
    client_files = {
        "ssh_config": _lines(*_client_options(left), *negotiable, *client_options),
        "user_key": _private(client_key),
        "known_hosts": _lines(f"{left.peer.gateway} {_public(server_key)}"),
    }
    # Here sshd locks itself up before it talks to strangers.
    await place_files(right.node, "/run/sshd", {}, cleanup)
    await place_files(right.node, DIRECTORY, server_files, cleanup)
    await place_files(left.node, DIRECTORY, client_files, cleanup)
    server_command = ("/usr/sbin/sshd", "-D", "-e", "-f", f"{DIRECTORY}/sshd_config")
    server = await start_daemon(right.node, cleanup, *server_command)
    await server.line("Server listening", READY_SECONDS)
    client_command = ("ssh", "-v", "-N", "-F", f"{DIRECTORY}/ssh_config", left.peer.gateway)
    client = await start_daemon(left.node, cleanup, *client_command)
    try:
        await client.line(ready, READY_SECONDS)
    except NodeError as error:
        raise NodeError(f"{error}\nThe last lines of sshd:\n{server.log_tail()}") from None
    return Connection(client, server)


def read_log(log: str) -> ReadBack:
    """The suite of the newest keys, if the client's log tells of the same for both directions."""
    newest = {made[1]: (made[2], made[3]) for made in _NEGOTIATED.finditer(log)}
    lines = "\n".join(made[0] for made in _NEGOTIATED.finditer(log))
    if len(newest) != 2 or len(set(newest.values())) != 1:
        return ReadBack(None, lines)
    cipher, mac = newest["client->server"]
    found = (suite.name for suite in all_suites() if (suite.cipher, suite.mac or _IMPLICIT) == (cipher, mac))
    return ReadBack(next(found, None), lines)


def _as_ssh(suite: Suite) -> SshSuite:
    assert isinstance(suite, SshSuite)
    return suite


def _server_options(end: Gateway) -> Sequence[str]:
    return (
        f"ListenAddress {end.site.outside.ipv4.ip}",
        f"Port {PORT}",
        f"HostKey {DIRECTORY}/host_key",
        f"AuthorizedKeysFile {DIRECTORY}/authorized_keys",
        "PidFile none",
        "UsePAM no",
        "PermitRootLogin prohibit-password",
        "AuthenticationMethods publickey",
        "PermitTunnel yes",
        "AllowTcpForwarding yes",
        "Compression no",
    )


def _client_options(end: Gateway) -> Sequence[str]:
    return (
        f"HostName {end.peer.outside.ipv4.ip}",
        f"Port {PORT}",
        "User root",
        f"IdentityFile {DIRECTORY}/user_key",
        "IdentitiesOnly yes",
        f"HostKeyAlias {end.peer.gateway}",
        f"UserKnownHostsFile {DIRECTORY}/known_hosts",
        "GlobalKnownHostsFile none",
        "StrictHostKeyChecking yes",
        "BatchMode yes",
        "ExitOnForwardFailure yes",
        "Compression no",
    )


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _private(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def _public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
