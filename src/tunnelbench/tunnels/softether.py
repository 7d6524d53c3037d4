"""SoftEther VPN: Ethernet frames in TLS between a VPN client and a virtual hub of a VPN server.

The hub is bridged to a tap device of the right gateway; the left one has the client's virtual adapter.
Frames go over TCP, or over SoftEther's own UDP packets beside it (`udp-acceleration`). Those have a cipher of
their own, ChaCha20-Poly1305 in the version that these releases speak; SoftEther says that they are used, but
names no cipher for them. The client trusts the server's own certificate and no other.

The server's setting of a cipher (ServerCipherSet) has no effect on TLS 1.3. So OpenSSL is told on both ends
to use TLS 1.2 (OPENSSL_CONF). What is called `null` is TLS for the log-in and nothing for the packets.
There are no new keys while a session lasts. Debian's packages end with bookworm.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.features import TUN
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Field, Inner, Kind, Layer, Oversize, layers
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Option,
    Place,
    ReadBack,
    Suite,
    Tunnel,
    Variant,
    options,
    suites,
)
from tunnelbench.tunnels.daemons import place_files, seconds_between, start_daemon, until
from tunnelbench.tunnels.point_to_point import join

PORT = 443
READY_SECONDS = 40.0
"""How long a step may take; idle all take some five seconds together."""

_RUN, _STATE, _LOGS = "/run/softether", "/var/lib/softether", "/var/log/softether"
_ACCOUNT = f"{_RUN}/account"
"""The client's settings for this connection."""
_CERTIFICATE = f"{_RUN}/server.pem"
"""The server's own, which it makes when it first starts; the client trusts no other."""
_NAME = "bench"
"""Of the hub, the user, the account and both devices, which SoftEther calls vpn_bench and tap_bench."""
_COMMAND_SECONDS = 30.0
_LOOK_EVERY_SECONDS = 0.2
_SERVER, _CLIENT = (f"localhost:{PORT}", "/SERVER"), ("localhost", "/CLIENT")
_ESTABLISHED = "VPN Session has been established"
_ACCELERATED = "chacha20-poly1305"
"""The only cipher of SoftEther's UDP packets."""

_DEVICE_MTU, _RECORD_BYTES = 1500, 16_384
_FRAME_COUNT = layers.header("SoftEther number of frames", "SoftEther Connection.c", 4)
_FRAME_LENGTH = layers.header("SoftEther frame length", "SoftEther Connection.c", 4)
_UDP_PADDING = 31
"""At most; of a random length, so that the protocol is harder to tell."""
_UDP_LAYER = Layer(
    "SoftEther UDP acceleration",
    "SoftEther UdpAccel.c, version 2",
    (
        Field("nonce", 12, Kind.INITIALISATION_VECTOR),
        # Cookie 4, clocks of both ends 8 each, length of the frame 2, whether it is compressed 1.
        Field("UDP acceleration header", 23, Kind.TUNNEL),
    ),
    after=(Field("tag", 16, Kind.INTEGRITY),),
)


@dataclass(frozen=True)
class SoftetherSuite(Suite):
    """A suite, and OpenSSL's name for it; None for no encryption after the log-in."""

    cipher: str | None


_SUITES = (
    SoftetherSuite("aes128-sha1", "AES-128-CBC", "HMAC-SHA-1", "ECDHE-RSA-AES128-SHA"),
    SoftetherSuite("aes256-sha1", "AES-256-CBC", "HMAC-SHA-1", "ECDHE-RSA-AES256-SHA"),
    SoftetherSuite("aes128-sha256", "AES-128-CBC", "HMAC-SHA-256", "ECDHE-RSA-AES128-SHA256"),
    SoftetherSuite("aes256-sha384", "AES-256-CBC", "HMAC-SHA-384", "ECDHE-RSA-AES256-SHA384"),
    SoftetherSuite("null", "none", "none", None),
    SoftetherSuite("aes128-gcm", "AES-128-GCM", "with the cipher", "ECDHE-RSA-AES128-GCM-SHA256"),
    SoftetherSuite("aes256-gcm", "AES-256-GCM", "with the cipher", "ECDHE-RSA-AES256-GCM-SHA384"),
    SoftetherSuite(
        "chacha20-poly1305", "ChaCha20-Poly1305", "with the cipher", "ECDHE-RSA-CHACHA20-POLY1305"
    ),
)


class Softether(Tunnel):
    """A VPN server on the right gateway, a VPN client on the left one."""

    name = "softether"
    title = "SoftEther VPN"
    suites = suites(*_SUITES)
    options = options(
        Option("udp-acceleration", ("no", "yes"), "Whether frames go over UDP beside the TCP connection."),
        Option("compression", ("none", "deflate"), "How frames are compressed before encryption."),
    )
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """What SoftEther can't combine, and releases without it."""
        if place.release == "trixie":
            return "Debian 13 has no SoftEther VPN; bullseye and bookworm have it"
        if variant["udp-acceleration"] == "yes" and variant.suite.name != _ACCELERATED:
            return "UDP acceleration encrypts with ChaCha20-Poly1305 alone"
        return None

    def needs(self, variant: Variant) -> Needs:
        """SoftEther's server, client and command line, and TUN devices."""
        programs = frozenset({"vpnserver", "vpnclient", "vpncmd"})
        return Needs(programs=programs, features=frozenset({TUN}))

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """Ethernet frames with a length each, and their number before those that are sent at once.

        Compressed, what does not shrink gets longer by what zlib adds.
        """
        assert isinstance(variant.suite, SoftetherSuite)
        outer = layers.ip(variant.outer)
        if variant["udp-acceleration"] == "yes":
            return Encapsulation(
                (outer, layers.udp(), _UDP_LAYER),
                Inner.FRAME,
                inner_mtu=_DEVICE_MTU,
                oversize=Oversize.FRAGMENTED_AFTER,
                varying=_UDP_PADDING,
                compresses=variant["compression"] != "none",
            )
        suite = variant.suite
        record = [layers.tls_record(suite.encryption, suite.integrity, "1.2")] if suite.cipher else []
        return Encapsulation(
            (outer, layers.tcp(), *record, _FRAME_COUNT, _FRAME_LENGTH),
            Inner.FRAME,
            inner_mtu=_DEVICE_MTU,
            chunk=_RECORD_BYTES,
            gathered=1,
            fills_segments=True,
            compresses=variant["compression"] != "none",
        )

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts the server and makes its hub, then has the client connect to it."""
        password = secrets.token_hex(16)
        server = await _start_server(right, variant, password, cleanup)
        certificate = await right.node.read_file(_CERTIFICATE)
        client = await _start_client(left, variant, password, certificate, cleanup)
        await client.line(_ESTABLISHED, READY_SECONDS)
        await join(left, right, f"vpn_{_NAME}", cleanup, ethernet=True, right_interface=f"tap_{_NAME}")
        if variant["udp-acceleration"] == "yes":
            await _accelerated(left.node, client)

        async def read_back() -> ReadBack:
            return ReadBack.agreed([read_status(text) for text in await _statuses(left.node, right.node)])

        transports = (f"tcp {PORT}", "udp") if variant["udp-acceleration"] == "yes" else (f"tcp {PORT}",)
        return Established(
            wire=frozenset(f"{variant.outer} {transport}" for transport in transports),
            read_back=read_back,
            programs=(client, server),
            facts={name: variant[name] for name in ("udp-acceleration", "compression")},
            compresses=variant["compression"] != "none",
            rekey_refusal="SoftEther makes none while a session lasts",
            handshake_seconds=seconds_between(client, "Status: Initializing", [client], _ESTABLISHED),
        )


TUNNEL = Softether()


# The server


async def _start_server(end: Gateway, variant: Variant, password: str, cleanup: AsyncExitStack) -> Program:
    administrator = secrets.token_hex(16)
    setup = (
        f"HubCreate {_NAME} /PASSWORD:{administrator}",
        f"Hub {_NAME}",
        f"UserCreate {_NAME} /GROUP:none /REALNAME:none /NOTE:none",
        f"UserPasswordSet {_NAME} /PASSWORD:{password}",
        "Hub",
        f"BridgeCreate {_NAME} /DEVICE:{_NAME} /TAP:yes",
        f"ServerCertGet {_as_argument(_CERTIFICATE)}",
    )
    server = await _start(end.node, "vpnserver", _server_configuration(variant), setup, cleanup)
    await _answers(end.node, _SERVER, server)
    await _command(end.node, *_SERVER, f"/IN:{_RUN}/setup")
    return server


def _server_configuration(variant: Variant) -> str:
    """It is to talk to its client alone, not to SoftEther's services or to hosts that keep lines open."""
    assert isinstance(variant.suite, SoftetherSuite)
    return f"""\
declare root
{{
	declare DDnsClient
	{{
		bool Disabled true
	}}
	declare ListenerList
	{{
		declare Listener0
		{{
			bool DisableDos true
			bool Enabled true
			uint Port {PORT}
		}}
	}}
	declare ServerConfiguration
	{{
		bool DisableNatTraversal true
		string CipherName {variant.suite.cipher or "~DEFAULT~"}
		bool UseKeepConnect false
	}}
}}
"""


# The client


async def _start_client(
    end: Gateway, variant: Variant, password: str, certificate: bytes, cleanup: AsyncExitStack
) -> Program:
    setup = (
        f"NicCreate {_NAME}",
        f"AccountImport {_as_argument(_ACCOUNT)}",
        f"AccountServerCertSet {_NAME} /LOADCERT:{_CERTIFICATE}",
        f"AccountPasswordSet {_NAME} /PASSWORD:{password} /TYPE:standard",
        f"AccountConnect {_NAME}",
    )
    client = await _start(end.node, "vpnclient", _CLIENT_CONFIGURATION, setup, cleanup)
    await end.node.write_file(_CERTIFICATE, certificate, 0o600)
    await end.node.write_file(_ACCOUNT, _account(end, variant).encode(), 0o600)
    await _answers(end.node, _CLIENT, client)
    await _command(end.node, *_CLIENT, f"/IN:{_RUN}/setup")
    return client


_CLIENT_CONFIGURATION = """\
declare root
{
	declare Config
	{
		bool UseKeepConnect false
	}
}
"""


def _account(end: Gateway, variant: Variant) -> str:
    assert isinstance(variant.suite, SoftetherSuite)
    return f"""\
declare root
{{
	bool CheckServerCert true
	bool StartupAccount false

	declare ClientAuth
	{{
		uint AuthType 2
		string PlainPassword $
		string Username {_NAME}
	}}
	declare ClientOption
	{{
		string AccountName {_NAME}
		string DeviceName {_NAME}
		string Hostname {end.peer_outside}
		string HubName {_NAME}
		uint MaxConnection 1
		bool NoUdpAcceleration {_truth(variant["udp-acceleration"] == "no")}
		uint NumRetry 0
		uint Port {PORT}
		bool UseCompress {_truth(variant["compression"] != "none")}
		bool UseEncrypt {_truth(variant.suite.cipher is not None)}
	}}
}}
"""


def _as_argument(path: str) -> str:
    """Of the command line, which takes what begins with a slash for a parameter."""
    return path.removeprefix("/")


def _truth(value: bool) -> str:
    return "true" if value else "false"


# Both


# SoftEther chooses among the ciphers of TLS 1.2 alone.
_OPENSSL = """\
openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = tls
[tls]
MaxProtocol = TLSv1.2
"""


async def _start(
    node: Node,
    program: str,
    configuration: str,
    setup: Iterable[str],
    cleanup: AsyncExitStack,
) -> Program:
    cleanup.push_async_callback(node.run, "sh", "-c", "rm -f /tmp/.unicode_cache_*.dat")
    name = program.replace("vpn", "vpn_")
    await place_files(node, _STATE, {f"{name}.config": configuration.encode()}, cleanup)
    await place_files(node, _LOGS, {}, cleanup)
    files = {"setup": "\n".join((*setup, "")), "openssl.cnf": _OPENSSL}
    await place_files(node, _RUN, {name: text.encode() for name, text in files.items()}, cleanup)
    environment = {"OPENSSL_CONF": f"{_RUN}/openssl.cnf"}
    return await start_daemon(node, cleanup, program, "execsvc", environment=environment)


async def _answers(node: Node, service: tuple[str, str], daemon: Program) -> None:
    """Asks until the daemon answers its command line."""

    async def is_ready() -> bool:
        asked = await node.run("vpncmd", *service, "/CMD", "About", timeout=_COMMAND_SECONDS, check=False)
        return asked.status == 0

    await until(
        is_ready,
        READY_SECONDS,
        f"{node.name}: {daemon.arguments[0]} was not ready",
        daemon,
        every=_LOOK_EVERY_SECONDS,
    )


async def _command(node: Node, *arguments: str) -> str:
    """What the command line prints; raises NodeError where a command fails, with passwords left out."""
    completed = await node.run("vpncmd", *arguments, timeout=_COMMAND_SECONDS, check=False)
    if completed.status != 0:
        complaint = [line for line in completed.text.splitlines() if line.strip() and "/PASSWORD" not in line]
        raise NodeError(f"{node.name}: vpncmd ended with {completed.status}: {' / '.join(complaint[-3:])}")
    return completed.text


async def _statuses(client: Node, server: Node) -> tuple[str, str]:
    """What both ends say of the session."""
    told = await _command(client, *_CLIENT, "/CMD", "AccountStatusGet", _NAME)
    session = _items(told).get("Session Name", "")
    ask = f"Hub {_NAME}\nSessionGet {session}\n".encode()
    await server.write_file(f"{_RUN}/ask", ask, 0o600)
    return told, await _command(server, *_SERVER, f"/IN:{_RUN}/ask")


async def _accelerated(client: Node, daemon: Program) -> None:
    """Asks until frames go over UDP."""

    async def is_active() -> bool:
        told = await _command(client, *_CLIENT, "/CMD", "AccountStatusGet", _NAME)
        return read_status(told).facts["udp-acceleration"] == "yes"

    await until(
        is_active,
        READY_SECONDS,
        f"{client.name}: UDP acceleration was not active",
        daemon,
        every=_LOOK_EVERY_SECONDS,
    )


_SHOWN = (
    "Encryption", "Use of Compression", "Physical Underlay Protocol", "UDP Acceleration is Active",
)  # fmt: skip


def read_status(text: str) -> ReadBack:
    """What one end says of the session, in the words of `AccountStatusGet` and `SessionGet`."""
    items = _items(text)
    shown = "\n".join(f"{name}: {items[name]}" for name in _SHOWN if name in items)
    accelerated = items.get("UDP Acceleration is Active") == "Yes"
    facts = {
        "udp-acceleration": "yes" if accelerated else "no",
        "compression": "none" if items.get("Use of Compression", "").startswith("No") else "deflate",
    }
    encryption = items.get("Encryption", "")
    algorithm = re.search(r"Algorithm: ([^)]+)\)", encryption)
    names = {suite.cipher: suite.name for suite in _SUITES}
    if algorithm:
        return ReadBack(names.get(algorithm[1]), shown, facts)
    return ReadBack("null" if encryption.startswith("Disabled") else None, shown, facts)


def _items(text: str) -> dict[str, str]:
    """The rows of a table as the command line draws it."""
    rows = (line.split("|", 1) for line in text.splitlines() if "|" in line)
    return {name.strip(): value.strip() for name, value in rows}
