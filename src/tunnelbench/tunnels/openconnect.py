"""OpenConnect: the protocol of AnyConnect between openconnect as the client and ocserv as the server.

The client logs in over TLS with a certificate; then packets go over DTLS 1.2 with a pre-shared key drawn from
that session, or over TLS itself. GnuTLS on both ends is given one cipher for all of it. AEADs use TLS 1.3,
ciphers with blocks TLS 1.2. It joins sites because the server routes the client's network to it (`iroute`).

The device gets the MTU that both ends agree on, so that nothing is fragmented after encryption. New keys come
by a reconnection (SIGUSR2), as with ocserv's own method `new-tunnel`: what is on its way then is lost.
Both ends have LZS, too, but ocserv prefers LZ4.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network

from tunnelbench.lab.features import TUN
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Option,
    ReadBack,
    Suite,
    Tunnel,
    Variant,
    options,
    suites,
)
from tunnelbench.tunnels.certificates import Authority, Identity
from tunnelbench.tunnels.daemons import all_print, place_files, printed, seconds_between, start_daemon
from tunnelbench.tunnels.openconnect_overhead import encapsulation
from tunnelbench.tunnels.openconnect_read_back import read_log, read_sessions

INTERFACE = "openconnect0"
CLIENT_DIRECTORY, SERVER_DIRECTORY = "/run/openconnect", "/run/ocserv"
PORT = 443
READY_SECONDS = 30.0
"""How long a step may take; idle all take a second together."""

_UP = {"dtls": "Established DTLS connection", "tls": "CSTP connected"}
"""What the client prints once packets can go over each carrier; the server has done its part by then."""
_DEVICE_UP = "the device is up"


@dataclass(frozen=True)
class OpenconnectSuite(Suite):
    """A suite, and what GnuTLS is told to allow for it."""

    priority: str


def _all_suites() -> Iterable[OpenconnectSuite]:
    for name, encryption in (
        ("aes128-gcm", "AES-128-GCM"),
        ("aes256-gcm", "AES-256-GCM"),
        ("chacha20-poly1305", "ChaCha20-Poly1305"),
        ("aes128-ccm", "AES-128-CCM"),
        ("aes256-ccm", "AES-256-CCM"),
    ):
        # TLS 1.3 has no AES-256-CCM.
        version = "-VERS-TLS1.3:" if encryption == "AES-256-CCM" else ""
        yield OpenconnectSuite(name, encryption, "with the cipher", f"{version}+{encryption.upper()}:+AEAD")
    for name, cipher, hash_name in (
        ("aes128-sha1", "AES-128-CBC", "SHA1"),
        ("aes256-sha1", "AES-256-CBC", "SHA1"),
        ("aes128-sha256", "AES-128-CBC", "SHA256"),
        ("aes256-sha384", "AES-256-CBC", "SHA384"),
        ("camellia128-sha256", "CAMELLIA-128-CBC", "SHA256"),
        ("3des-sha1", "3DES-CBC", "SHA1"),
        ("null-sha1", "NULL", "SHA1"),
    ):
        encryption = "none" if cipher == "NULL" else cipher.replace("CAMELLIA", "Camellia")
        integrity = f"HMAC-SHA-{hash_name.removeprefix('SHA')}"
        yield OpenconnectSuite(name, encryption, integrity, f"-VERS-TLS1.3:+{cipher}:+{hash_name}")


class Openconnect(Tunnel):
    """ocserv on the right gateway, openconnect on the left one."""

    name = "openconnect"
    title = "OpenConnect"
    suites = suites(*_all_suites())
    options = options(
        Option("carrier", ("dtls", "tls"), "What packets go over, besides the TLS connection of the log-in."),
        Option("compression", ("none", "lz4"), "How each packet is compressed before encryption."),
    )
    outer_families = frozenset(Family)
    topologies = frozenset({"site-to-site", "host-to-host", "remote-access"})

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def needs(self, variant: Variant) -> Needs:
        """ocserv with the tool that asks it, openconnect, and TUN devices."""
        return Needs(programs=frozenset({"ocserv", "occtl", "openconnect"}), features=frozenset({TUN}))

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """A record of DTLS 1.2, or of TLS in TCP, with each packet and its kind."""
        return encapsulation(variant)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts the server, then the client, which logs in."""
        authority = Authority()
        users = {left.site.gateway: _site_user(left)}
        server = await _start_server(right, _POOLS, users, authority, variant, cleanup)
        client = await _start_client(left, right, authority, variant, cleanup)
        for line in (_UP[variant["carrier"]], _DEVICE_UP):
            await client.line(line, READY_SECONDS)
        await left.route_to_peer(cleanup, interface=INTERFACE)
        return _established(right, server, (client,), variant)

    async def serve(
        self, server: Gateway, clients: Sequence[Gateway], variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts the server, which knows each client's address, then all clients at once."""
        authority = Authority()
        users = {client.site.gateway: _remote_user(client) for client in clients}
        pools = [clients[0].site.inside.network(family) for family in Family]
        daemon = await _start_server(server, pools, users, authority, variant, cleanup)
        programs = await asyncio.gather(
            *(_start_client(client, server, authority, variant, cleanup) for client in clients)
        )
        for line in (_UP[variant["carrier"]], _DEVICE_UP):
            await all_print(line, programs, READY_SECONDS)
        for client in clients:
            await client.route_to_peer(cleanup, interface=INTERFACE)
        return _established(server, daemon, programs, variant)


TUNNEL = Openconnect()


def _established(
    gateway: Gateway, server: Program, clients: Sequence[Program], variant: Variant
) -> Established:
    carrier = variant["carrier"]

    async def read_back() -> ReadBack:
        asked = await gateway.node.run("occtl", "-s", f"{SERVER_DIRECTORY}/control", "-j", "show", "users")
        return ReadBack.agreed(
            [*(read_log(printed(client)) for client in clients), read_sessions(asked.text, printed(server))]
        )

    async def rekey() -> None:
        asked = asyncio.get_running_loop().time()
        for client in clients:
            await client.signal(signal.SIGUSR2)
        for client in clients:
            await client.line(_UP[carrier], READY_SECONDS, after=asked)

    handshakes = [seconds_between(client, "^POST ", [client], _UP[carrier]) for client in clients]
    transports = ("tcp", "udp") if carrier == "dtls" else ("tcp",)
    return Established(
        wire=frozenset(f"{variant.outer} {transport} {PORT}" for transport in transports),
        read_back=read_back,
        programs=(*clients, server),
        facts={"carrier": carrier, "compression": variant["compression"]},
        compresses=variant["compression"] != "none",
        rekey=rekey,
        handshake_seconds=max((seconds for seconds in handshakes if seconds is not None), default=None),
    )


def _priority(variant: Variant) -> str:
    assert isinstance(variant.suite, OpenconnectSuite)
    return f"NORMAL:-CIPHER-ALL:-MAC-ALL:{variant.suite.priority}"


# The server


def _site_user(client: Gateway) -> str:
    """What the server is to know of a client that has a network behind it."""
    networks = (client.site.inside.network(family) for family in Family)
    return "".join(f"iroute = {network}\n" for network in networks)


def _remote_user(client: Gateway) -> str:
    """What the server is to know of a client that is alone: the address that it gets."""
    return "".join(f"explicit-{family} = {client.site.inside.address(family)}\n" for family in Family)


_Pools = Sequence[IPv4Network | IPv6Network]
_POOLS: _Pools = (IPv4Network("10.255.0.0/24"), IPv6Network("fd00:ff::/64"))
"""Where clients get addresses from that have a network behind them."""


async def _start_server(
    end: Gateway,
    pools: _Pools,
    users: Mapping[str, str],
    authority: Authority,
    variant: Variant,
    cleanup: AsyncExitStack,
) -> Program:
    identity = authority.issue(end.site.gateway, "server")
    files = {
        "ocserv.conf": "\n".join(_server_configuration(end, pools, variant)).encode(),
        "route": _route_script(end).encode(),
        **_pem(authority, identity),
    }
    await place_files(end.node, SERVER_DIRECTORY, files, cleanup)
    known = {name: lines.encode() for name, lines in users.items()}
    await place_files(end.node, f"{SERVER_DIRECTORY}/users", known, cleanup)
    configuration = f"{SERVER_DIRECTORY}/ocserv.conf"
    server = await start_daemon(
        end.node, cleanup, "ocserv", "--foreground", "--debug", "2", "--config", configuration
    )
    await server.line("main: initialized", READY_SECONDS)
    return server


def _server_configuration(end: Gateway, pools: _Pools, variant: Variant) -> Iterable[str]:
    yield 'auth = "certificate"'
    yield "cert-user-oid = 2.5.4.3"
    yield f"listen-host = {end.outside}"
    yield f"tcp-port = {PORT}"
    if variant["carrier"] == "dtls":
        yield f"udp-port = {PORT}"
    yield f'tls-priorities = "{_priority(variant)}"'
    for option, name in (("server-cert", "own.crt"), ("server-key", "own.key"), ("ca-cert", "authority.crt")):
        yield f"{option} = {SERVER_DIRECTORY}/{name}"
    yield from ("run-as-user = root", "run-as-group = root", "isolate-workers = false")
    yield f"socket-file = {SERVER_DIRECTORY}/socket"
    yield f"pid-file = {SERVER_DIRECTORY}/pid"
    yield from ("use-occtl = true", f"occtl-socket-file = {SERVER_DIRECTORY}/control")
    yield "device = ocserv"
    yield from (f"ipv{network.version}-network = {network}" for network in pools)
    yield "ipv6-subnet-prefix = 128"
    yield "ping-leases = false"
    yield f"config-per-user = {SERVER_DIRECTORY}/users/"
    # Clients that come from one address, or all at once, are no attack here.
    yield from ("max-same-clients = 0", "max-clients = 0", "rate-limit-ms = 0", "max-ban-score = 0")
    yield f'route-add-cmd = "sh {SERVER_DIRECTORY}/route %{{R}} %{{D}}"'
    yield f"compression = {'false' if variant['compression'] == 'none' else 'true'}"


def _route_script(end: Gateway) -> str:
    """Leads a client's network to its device, from the inside address where host and gateway are one."""
    source = {
        family: f" src {end.site.inside.address(family)}" if end.site.is_one_node else "" for family in Family
    }
    return f"""\
case $1 in
*:*) exec ip route replace "$1" dev "$2"{source[Family.IPV6]};;
*) exec ip route replace "$1" dev "$2"{source[Family.IPV4]};;
esac
"""


# The client


async def _start_client(
    end: Gateway, server: Gateway, authority: Authority, variant: Variant, cleanup: AsyncExitStack
) -> Program:
    files = {"script": _SCRIPT, **_pem(authority, authority.issue(end.site.gateway, "client"))}
    await place_files(end.node, CLIENT_DIRECTORY, files, cleanup)
    name = server.site.gateway
    return await start_daemon(
        *(end.node, cleanup, "openconnect", "--verbose", "--non-inter", "--no-system-trust"),
        f"--cafile={CLIENT_DIRECTORY}/authority.crt",
        f"--certificate={CLIENT_DIRECTORY}/own.crt",
        f"--sslkey={CLIENT_DIRECTORY}/own.key",
        f"--gnutls-priority={_priority(variant)}",
        f"--compression={'none' if variant['compression'] == 'none' else 'stateless'}",
        *(["--no-dtls"] if variant["carrier"] == "tls" else []),
        f"--resolve={name}:{end.peer_outside}",
        f"--interface={INTERFACE}",
        f"--script=sh {CLIENT_DIRECTORY}/script",
        f"https://{name}",
    )


_SCRIPT = f"""\
[ "$reason" = connect ] || exit 0
ip link set dev "$TUNDEV" up mtu "$INTERNAL_IP4_MTU"
ip address add "$INTERNAL_IP4_ADDRESS/32" dev "$TUNDEV"
ip address add "$INTERNAL_IP6_ADDRESS/128" dev "$TUNDEV"
echo "{_DEVICE_UP}"
""".encode()


def _pem(authority: Authority, identity: Identity) -> dict[str, bytes]:
    return {
        "authority.crt": authority.certificate,
        "own.crt": identity.certificate,
        "own.key": identity.key,
    }
