"""Nebula: a mesh VPN in user space, whose nodes know each other by certificates of an own authority.

Both ends are found by `static_host_map`, without a lighthouse; each leads its peer's network into the tunnel
(`unsafe_routes`), as its certificate permits. What differs from what one may expect:

- The Nebula of Debian's releases carries IPv4 alone; IPv6 inside came with 1.10. It goes over either.
- The device has Nebula's default MTU of 1300.
- Nebula says nowhere which cipher it uses. So the suite is read back by a handshake with each daemon, made on
  its own gateway as a third node of the mesh: see `nebula_noise`.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.lab.features import TUN
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Field, Kind, Layer
from tunnelbench.overhead import layers as formats
from tunnelbench.tunnels.base import (
    EVERYTHING,
    Established,
    Gateway,
    Needs,
    Place,
    ReadBack,
    Suite,
    Tunnel,
    Variant,
    suites,
)
from tunnelbench.tunnels.daemons import place_files, printed, start_daemon
from tunnelbench.tunnels.nebula_noise import Probe

INTERFACE = "nebula0"
DIRECTORY = "/run/nebula"
PORT = 4242
READY_SECONDS = 20.0
"""How long a step may take; idle all take less than a second together."""

_AUTHORITY_DIRECTORY = "/run/nebula-authority"
_LEFT_ADDRESS, _RIGHT_ADDRESS, _ASKING_ADDRESS = "10.255.0.1", "10.255.0.2", "10.255.0.3"
"""In the mesh: of both ends, and of whoever asks for the cipher."""
_PREFIX = 29
_MTU = 1300
_CIPHERS = {"aes256-gcm": "aes", "chacha20-poly1305": "chachapoly"}
_CALLED = r'"stage":2.*Handshake message received'
_ANSWERED = r'"stage":2.*Handshake message sent'
# Nebula says that it is active a moment before its device has an address.
_FIRST_PACKET = 'for attempt in $(seq 20); do ping -c 1 -W 0.5 "$0" && break; sleep 0.05; done'
# Sends what it reads as a datagram, and prints the answer.
_ASK = """\
import socket, sys
address, port = sys.argv[1], int(sys.argv[2])
with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as asking:
    asking.settimeout(2)
    asking.connect((address, port))
    asking.send(sys.stdin.buffer.read())
    print(asking.recv(65535).hex())
"""


class Nebula(Tunnel):
    """Nebula on both gateways."""

    name = "nebula"
    title = "Nebula"
    suites = suites(
        Suite("aes256-gcm", "AES-256-GCM", "with the cipher"),
        Suite("chacha20-poly1305", "ChaCha20-Poly1305", "with the cipher"),
    )
    carries = frozenset(traffic for traffic in EVERYTHING if traffic[1] is Family.IPV4)
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """Debian 11 has no Nebula."""
        return "Debian 11 has no Nebula; bookworm and trixie have it" if place.release == "bullseye" else None

    def needs(self, variant: Variant) -> Needs:
        """Nebula, what makes its certificates, what asks for its cipher, and TUN devices."""
        programs = frozenset({"nebula", "nebula-cert", "python3"})
        return Needs(programs=programs, features=frozenset({TUN}))

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """UDP, Nebula's header, a packet and the tag of its cipher."""
        layer = Layer(
            "Nebula",
            "Nebula source, package header",
            (Field("Nebula header", 16, Kind.TUNNEL),),
            after=(Field("tag", 16, Kind.INTEGRITY),),
        )
        return Encapsulation((formats.ip(variant.outer), formats.udp(), layer), inner_mtu=_MTU)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts both ends, then has a first packet begin a handshake."""
        authority = await _Authority.make(left.node, cleanup)
        server = await _start(right, _RIGHT_ADDRESS, _LEFT_ADDRESS, authority, variant, cleanup)
        client = await _start(left, _LEFT_ADDRESS, _RIGHT_ADDRESS, authority, variant, cleanup)
        await left.node.run("sh", "-c", _FIRST_PACKET, _RIGHT_ADDRESS, timeout=READY_SECONDS, check=False)
        await client.line(_CALLED, READY_SECONDS)
        await server.line(_ANSWERED, READY_SECONDS)
        for end in (left, right):
            await end.route_to_peer(cleanup, interface=INTERFACE, families=[Family.IPV4])
        stranger = await authority.issue("asking", _ASKING_ADDRESS)

        async def read_back() -> ReadBack:
            return ReadBack.agreed([await _ask(end, stranger) for end in (left, right)])

        return Established(
            wire=frozenset({f"{variant.outer} udp {PORT}"}),
            read_back=read_back,
            programs=(client, server),
            rekey_refusal="Nebula takes no order for them",
            handshake_seconds=handshake_seconds(printed(client)),
        )


TUNNEL = Nebula()


@dataclass(frozen=True)
class _Identity:
    """A certificate and its private key, as Nebula writes both."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class _Authority:
    """The authority of one bring-up; its key stays on the node that it was made on."""

    node: Node
    certificate: bytes

    @classmethod
    async def make(cls, node: Node, cleanup: AsyncExitStack) -> _Authority:
        await place_files(node, _AUTHORITY_DIRECTORY, {}, cleanup)
        certificate, key = (f"{_AUTHORITY_DIRECTORY}/authority.{kind}" for kind in ("crt", "key"))
        await node.run(
            *("nebula-cert", "ca", "-name", "tunnelbench", "-out-crt", certificate, "-out-key", key)
        )
        return cls(node, await node.read_file(certificate))

    async def issue(self, name: str, address: str, networks: Iterable[str] = ()) -> _Identity:
        """A new identity for a node of the mesh, which may also send from `networks`."""
        certificate, key = (f"{_AUTHORITY_DIRECTORY}/{name}.{kind}" for kind in ("crt", "key"))
        await self.node.run(
            *("nebula-cert", "sign", "-name", name, "-ip", f"{address}/{_PREFIX}"),
            *("-subnets", ",".join(networks)),
            *("-ca-crt", f"{_AUTHORITY_DIRECTORY}/authority.crt"),
            *("-ca-key", f"{_AUTHORITY_DIRECTORY}/authority.key"),
            *("-out-crt", certificate, "-out-key", key),
        )
        return _Identity(await self.node.read_file(certificate), await self.node.read_file(key))


async def _start(
    end: Gateway, own: str, peer: str, authority: _Authority, variant: Variant, cleanup: AsyncExitStack
) -> Program:
    identity = await authority.issue(end.site.gateway, own, [str(end.site.inside.network(Family.IPV4))])
    files = {
        "authority.crt": authority.certificate,
        "own.crt": identity.certificate,
        "own.key": identity.key,
        # JSON is YAML, too.
        "nebula.yml": json.dumps(_configuration(end, peer, variant), indent=2).encode(),
    }
    await place_files(end.node, DIRECTORY, files, cleanup)
    daemon = await start_daemon(end.node, cleanup, "nebula", "-config", f"{DIRECTORY}/nebula.yml")
    await daemon.line("Nebula interface is active", READY_SECONDS)
    return daemon


def _configuration(end: Gateway, peer: str, variant: Variant) -> dict[str, object]:
    anything = [{"port": "any", "proto": "any", "host": "any", "local_cidr": "0.0.0.0/0"}]
    return {
        "pki": {
            "ca": f"{DIRECTORY}/authority.crt",
            "cert": f"{DIRECTORY}/own.crt",
            "key": f"{DIRECTORY}/own.key",
        },
        "cipher": _CIPHERS[variant.suite.name],
        "listen": {"host": str(end.outside), "port": PORT},
        "static_host_map": {peer: [_endpoint(end)]},
        "lighthouse": {"am_lighthouse": False, "hosts": []},
        "tun": {
            "dev": INTERFACE,
            "unsafe_routes": [{"route": str(end.peer.inside.network(Family.IPV4)), "via": peer}],
        },
        "firewall": {"outbound": anything, "inbound": anything},
        "logging": {"level": "info", "format": "json"},
    }


def _endpoint(end: Gateway) -> str:
    address = end.peer_outside
    return f"{address}:{PORT}" if address.version == 4 else f"[{address}]:{PORT}"


async def _ask(end: Gateway, stranger: _Identity) -> ReadBack:
    """From the gateway itself, so that nothing of it crosses the wire."""
    probe = Probe(_content(stranger.key), _content(stranger.certificate))
    arguments = (str(end.outside), str(PORT))
    asked = await end.node.run("python3", "-c", _ASK, *arguments, input=probe.request, check=False)
    suite = probe.cipher(bytes.fromhex(asked.text)) if asked.status == 0 else None
    said = (
        f"its answer to a handshake can be opened with {suite}" if suite else "no answer that can be opened"
    )
    return ReadBack(suite, f"{end.node.name}: {said}")


def _content(pem: bytes) -> bytes:
    """What is between the first line and the last one, where Nebula writes labels of its own."""
    return b64decode(b"".join(line for line in pem.split(b"\n") if not line.startswith(b"-")))


def handshake_seconds(log: str) -> float | None:
    """How long the newest handshake took, as the end that began it says."""
    took = re.findall(r'"durationNs":(\d+).*"msg":"Handshake message received"', log)
    return int(took[-1]) / 1e9 if took else None
