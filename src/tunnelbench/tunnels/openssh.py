"""What the VPNs made of OpenSSH have in common: a connection between the gateways, and what it can tell.

A client on the left gateway is logged in by key as root to a server on the right one. Both accept one cipher,
one MAC and one compression; key exchange, new keys after so many bytes (RFC 4344) and all else are their
defaults. The client is OpenSSH's, of release 7.5 (`ssh1`) for ciphers that later ones lack.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.features import Feature
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Layer, layers
from tunnelbench.tunnels.base import Established, Gateway, Needs, ReadBack, Target, Variant
from tunnelbench.tunnels.daemons import place_files, printed, seconds_between, start_daemon
from tunnelbench.tunnels.ssh_log import client_log
from tunnelbench.tunnels.ssh_read_back import read_logs
from tunnelbench.tunnels.ssh_server import PORT, Listener, listener_for, server_needs, start_server
from tunnelbench.tunnels.ssh_suites import encrypts_then_macs, suite_of, terms

DIRECTORY = "/run/openssh"
READY_SECONDS = 20.0
"""How long each end may take; idle they take less than half a second together."""

_CONTROL = f"{DIRECTORY}/control"
_NEW_KEYS = "SSH2_MSG_NEWKEYS received"
# Ciphers that OpenSSL 3 calls legacy are there for those who ask for them.
_OPENSSL_CONFIG = b"""\
openssl_conf = library
[library]
providers = providers
[providers]
default = activated
legacy = activated
[activated]
activate = yes
"""


def ssh_needs(variant: Variant, *features: Feature) -> Needs:
    """A client and a server with the suite, and what else there must be."""
    program, options = _client_program(variant), terms(variant).options
    check = (program, "-G", "-F", "none", *(f"-o{option}" for option in options), "localhost")
    has_suite = Feature(f"{program} with {', '.join(options)}", check, user_space=True)
    server = server_needs(variant)
    return Needs(server.programs | {program}, server.features | {has_suite, *features})


def packet_layers(variant: Variant) -> tuple[Layer, ...]:
    """What is around the data of a channel on the wire."""
    suite = suite_of(variant)
    packet = layers.ssh_packet(
        suite.encryption, suite.integrity, encrypt_then_mac=encrypts_then_macs(variant)
    )
    return (layers.ip(variant.outer), layers.tcp(), packet, layers.ssh_channel_data())


@dataclass(frozen=True)
class Connection:
    """A client that is logged in, and the server that it is logged in to."""

    client: Program
    server: Program
    listener: Listener
    left: Gateway
    variant: Variant

    def established(
        self,
        *,
        forwards: Mapping[tuple[Family, int], Target] | None = None,
        proxies: Mapping[Family, Target] | None = None,
    ) -> Established:
        """The tunnel that this is; the handshake ends when both ends say that the client is logged in."""
        programs, agreed = (self.client, self.server), terms(self.variant)
        logged_in = f"Authenticated to|{self.listener.accepted}"
        return Established(
            wire=frozenset({f"{self.left.outer} tcp {PORT}"}),
            read_back=self.read_back,
            programs=programs,
            forwards=forwards or {},
            proxies=proxies or {},
            facts=agreed.facts,
            compresses=agreed.compression != "none",
            rekey=self.rekey,
            handshake_seconds=seconds_between(self.client, "Connecting to", programs, logged_in),
        )

    async def read_back(self) -> ReadBack:
        """The suite of the newest keys, as both ends say."""
        return read_logs(printed(self.client), printed(self.server))

    async def rekey(self) -> None:
        """Types the escape sequence `~R` (ssh(1)), and waits until both ends receive with new keys.

        That is for terminals alone, so a session with one joins the connection for a moment. From then on the
        client sends small packets at once, as it does for sessions (TCP_NODELAY).
        """
        asked = asyncio.get_running_loop().time()
        command = (_client_program(self.variant), "-F", "none", "-S", _CONTROL, "-tt", "-e", "~")
        session = await self.left.node.spawn(*command, self.left.peer.gateway, "cat", keep_input=True)
        try:
            await session.input(b"~R")
            await self.client.line(_NEW_KEYS, READY_SECONDS, after=asked)
            await self.server.line(self.listener.new_keys, READY_SECONDS, after=asked)
        finally:
            await session.stop()


async def connect(
    left: Gateway,
    right: Gateway,
    variant: Variant,
    client_options: Sequence[str],
    cleanup: AsyncExitStack,
    *,
    makes_device: bool = False,
) -> Connection:
    """Starts a server on the right gateway, and on the left one a client with some more options.

    Returns when both say that the client is logged in, and that there is a tun or tap device if one is to be
    made. Raises NodeError, with the last lines of both logs, when one ends or takes too long before.
    """
    server_key, client_key = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    listener, program = listener_for(variant), _client_program(variant)
    log = await client_log(left.node, program)
    environment = {"OPENSSL_CONF": f"{DIRECTORY}/openssl.cnf"} if suite_of(variant).is_legacy else {}
    client_files = {
        "ssh_config": _lines(*_client_options(left), *log.options, *terms(variant).options, *client_options),
        "user_key": _private(client_key),
        "known_hosts": _lines(f"{left.peer.gateway} {_public(server_key)}"),
        "openssl.cnf": _OPENSSL_CONFIG,
    }
    server_files = {
        "host_key": _private(server_key),
        "authorized_keys": _lines(_public(client_key)),
        "openssl.cnf": _OPENSSL_CONFIG,
    }
    await place_files(left.node, DIRECTORY, client_files, cleanup)
    server = await start_server(right, variant, DIRECTORY, server_files, environment, cleanup)
    await server.line("Server listening", READY_SECONDS)
    command = log.command(program, "-N", "-F", f"{DIRECTORY}/ssh_config", left.peer.gateway)
    client = await start_daemon(left.node, cleanup, *command, environment=environment)
    try:
        await client.line("Entering interactive session", READY_SECONDS)
        await server.line(listener.device if makes_device else listener.accepted, READY_SECONDS)
    except NodeError as error:
        raise NodeError(f"{error}\nThe last lines of the server:\n{server.log_tail()}") from None
    return Connection(client, server, listener, left, variant)


def _client_program(variant: Variant) -> str:
    return "ssh1" if suite_of(variant).is_legacy else "ssh"


def _client_options(end: Gateway) -> Sequence[str]:
    return (
        f"HostName {end.peer_outside}",
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
        "ControlMaster yes",
        f"ControlPath {_CONTROL}",
    )


def _lines(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


def _private(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())


def _public(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
