"""What the implementations of WireGuard have in common: a device wg0 that wg(8) configures and asks.

The protocol (Donenfeld, "WireGuard: Next Generation Kernel Network Tunnel", NDSS 2017) has one suite and
negotiates none. Each implementation gets the MTU of 1420 that wg-quick(8) would give it over IPv6, so that
they can be compared over both.

A handshake is begun by the first packet, which waits for its end. So an echo that comes back through the
tunnel proves that both ends use the new keys, and the time it took is that of the handshake with one round
trip more. New keys come by themselves two minutes after the last ones, and nothing but a packet that is to be
sent then asks for them. To force them, one end is configured anew, by which it forgets its session: harder
than the renewal of the protocol, during which the old keys still serve.
"""

from __future__ import annotations

import asyncio
import math
import re
from abc import abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from secrets import token_bytes

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tunnelbench.lab import messages
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family, Site
from tunnelbench.overhead import Encapsulation, Layer, layers
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Option,
    ReadBack,
    Suite,
    Tunnel,
    Variant,
    options,
    suites,
)
from tunnelbench.tunnels.daemons import place_files

INTERFACE = "wg0"
DIRECTORY = "/run/wireguard-keys"
PORT = 51820
MTU = 1420
READY_SECONDS = 20.0
"""How long a step may take; idle all take less than half a second together."""

PRESHARED_KEY = Option(
    "preshared-key",
    ("no", "yes"),
    "Whether both ends mix a symmetric key that they share into each handshake.",
)

_SUITE = Suite("chacha20-poly1305", "ChaCha20-Poly1305", "with the cipher")
_CONFIGURATION = f"{DIRECTORY}/{INTERFACE}.conf"


class WireguardTunnel(Tunnel):
    """WireGuard by one of its implementations."""

    suites = suites(_SUITE)
    options = options(PRESHARED_KEY)
    outer_families = frozenset(Family)
    topologies = frozenset({"site-to-site", "host-to-host", "remote-access"})

    @abstractmethod
    async def create(self, end: Gateway, cleanup: AsyncExitStack) -> Program | None:
        """Makes the device, ready for wg(8), on a node; returns the program behind it if there is one."""

    async def read_status(self, node: Node, program: Program | None, peers: int) -> ReadBack:
        """What one end says of its peers; of a suite only if it has a session with each of them."""
        shown = await node.run("wg", "show", INTERFACE)
        return read_status(shown.text, peers)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts both ends, then has the left one send an echo request, which takes a handshake."""
        shared = _shared_key(variant)
        left_key, right_key = X25519PrivateKey.generate(), X25519PrivateKey.generate()
        to_left, to_right = _site_behind(right, left_key, shared), _site_behind(left, right_key, shared)
        ends = [
            await self._start(right, right_key, [to_left], cleanup),
            await self._start(left, left_key, [to_right], cleanup),
        ]
        return await _established(variant, [left], ends)

    async def serve(
        self, server: Gateway, clients: Sequence[Gateway], variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts the server, then all clients at once; each has a preshared key of its own, if any.

        WireGuard gives nobody an address: both ends are configured with those that the clients are to have.
        """
        own = X25519PrivateKey.generate()
        keys = [X25519PrivateKey.generate() for _ in clients]
        shared = [_shared_key(variant) for _ in clients]
        to_clients = [_client(*each) for each in zip(clients, keys, shared, strict=True)]
        ends = [await self._start(server, own, to_clients, cleanup)]

        async def start(client: Gateway, key: X25519PrivateKey, shared: bytes | None) -> _End:
            to_server = [_site_behind(client, own, shared)]
            return await self._start(client, key, to_server, cleanup, _addresses(client))

        ends += await asyncio.gather(*map(start, clients, keys, shared))
        return await _established(variant, clients, ends)

    def layer(self) -> Layer:
        """What this implementation puts around a packet."""
        return layers.wireguard(MTU)

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """One datagram for each packet; what the device's MTU is too small for is fragmented before."""
        return Encapsulation((layers.ip(variant.outer), layers.udp(), self.layer()), inner_mtu=MTU)

    async def _start(
        self,
        end: Gateway,
        key: X25519PrivateKey,
        peers: Sequence[Peer],
        cleanup: AsyncExitStack,
        addresses: Sequence[str] = (),
    ) -> _End:
        text = _configuration(key, peers).encode()
        await place_files(end.node, DIRECTORY, {f"{INTERFACE}.conf": text}, cleanup)
        program = await self.create(end, cleanup)
        await _configure(end)
        await end.node.configure(
            *(messages.AddAddress(INTERFACE, address) for address in addresses),
            messages.SetLink(INTERFACE, mtu=MTU),
            messages.SetLink(INTERFACE, up=True),
        )
        await end.route_to_peer(cleanup, interface=INTERFACE)
        return _End(self, end, program, len(peers))


@dataclass(frozen=True)
class Peer:
    """What one end is told about another."""

    key: X25519PrivateKey
    shared: bytes | None
    endpoint: IPv4Address | IPv6Address | None
    """Where it is; None where that is learned from its packets."""
    networks: tuple[str, ...]


@dataclass(frozen=True)
class _End:
    """One end as it runs."""

    tunnel: WireguardTunnel
    gateway: Gateway
    program: Program | None
    peers: int

    async def status(self) -> ReadBack:
        """What it says of its peers."""
        return await self.tunnel.read_status(self.gateway.node, self.program, self.peers)

    async def last_words(self) -> str:
        """The end of its log, or what wg(8) shows where the kernel keeps none."""
        return self.program.log_tail() if self.program else (await self.status()).text


def _shared_key(variant: Variant) -> bytes | None:
    return token_bytes(32) if variant["preshared-key"] == "yes" else None


def _site_behind(end: Gateway, key: X25519PrivateKey, shared: bytes | None) -> Peer:
    networks = tuple(str(end.peer.inside.network(family)) for family in Family)
    return Peer(key, shared, end.peer_outside, networks)


def _client(client: Gateway, key: X25519PrivateKey, shared: bytes | None) -> Peer:
    return Peer(key, shared, None, _addresses(client))


def _addresses(client: Gateway) -> tuple[str, ...]:
    """What a client's site is called inside, each as a network of one address."""
    inside = [client.site.inside.address(family) for family in Family]
    return tuple(f"{address}/{address.max_prefixlen}" for address in inside)


async def _established(variant: Variant, begin: Sequence[Gateway], ends: Sequence[_End]) -> Established:
    """Has all of `begin` make a handshake at once; the one that took longest is told."""

    async def handshakes() -> list[float]:
        return await asyncio.gather(*(_echo(end, ends) for end in begin))

    async def rekey() -> None:
        await asyncio.gather(*map(_configure, begin))
        await handshakes()

    async def read_back() -> ReadBack:
        return ReadBack.agreed([await end.status() for end in ends])

    return Established(
        wire=frozenset({f"{variant.outer.value} udp {PORT}"}),
        read_back=read_back,
        programs=[end.program for end in ends if end.program],
        facts={"preshared key": variant["preshared-key"]},
        rekey=rekey,
        handshake_seconds=max(await handshakes()),
    )


async def _configure(end: Gateway) -> None:
    """Gives the device all of its configuration; it forgets the peers and sessions that it had."""
    await end.node.run("wg", "setconf", INTERFACE, _CONFIGURATION)


async def _echo(begun: Gateway, ends: Sequence[_End]) -> float:
    """Sends echo requests through the tunnel until one is answered, and returns its round trip in seconds.

    Raises NodeError, with the last words of all ends, where none is.
    """
    source, target = (str(_inner_address(site)) for site in (begun.site, begun.peer))
    deadline = ("-c", "1", "-i", "0.2", "-w", str(math.ceil(READY_SECONDS)))
    answered = await begun.node.run(
        *("ping", "-n", *deadline, "-I", source, target), timeout=READY_SECONDS + 10, check=False
    )
    if found := re.search(r" time=([\d.]+) ms", answered.text):
        return float(found[1]) / 1000
    words = "\n".join([f"{end.gateway.node.name}:\n{await end.last_words()}" for end in ends])
    raise NodeError(f"WireGuard was not ready within {READY_SECONDS:g} s; its last lines:\n{words}")


def _inner_address(site: Site) -> IPv4Address | IPv6Address:
    """A gateway's address in the network that the tunnel joins to the other."""
    return (site.gateway_inside or site.inside).address(Family.IPV4)


def _configuration(key: X25519PrivateKey, peers: Sequence[Peer]) -> str:
    own = f"[Interface]\nPrivateKey = {_text(key.private_bytes_raw())}\nListenPort = {PORT}\n"
    return "\n".join([own, *(section(peer) for peer in peers)])


def section(peer: Peer) -> str:
    lines = {
        "PublicKey": _text(peer.key.public_key().public_bytes_raw()),
        **({"Endpoint": _endpoint(peer.endpoint)} if peer.endpoint else {}),
        "AllowedIPs": ", ".join(peer.networks),
        **({"PresharedKey": _text(peer.shared)} if peer.shared else {}),
    }
    return "[Peer]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())


def _endpoint(address: IPv4Address | IPv6Address) -> str:
    return f"[{address}]:{PORT}" if address.version == 6 else f"{address}:{PORT}"


def _text(key: bytes) -> str:
    return b64encode(key).decode()


def read_status(text: str, peers: int = 1, sessions: int | None = None) -> ReadBack:
    """The only suite there is, if `wg show` tells of so many peers and a handshake with each of them.

    Where an implementation tells wg(8) of no handshakes, `sessions` is how many it says elsewhere.
    """
    found = len(re.findall(r"^peer: ", text, re.MULTILINE))
    shown = len(re.findall(r"^  latest handshake: ", text, re.MULTILINE))
    shared = len(re.findall(r"^  preshared key: ", text, re.MULTILINE))
    levels = {0: "no", peers: "yes"}
    if found != peers or (shown if sessions is None else sessions) < peers or shared not in levels:
        return ReadBack(None, text.strip())
    return ReadBack(_SUITE.name, text.strip(), {"preshared key": levels[shared]})
