"""WireGuard by wireguard-go: a program encrypts the packets of a tun device, several at a time.

The protocol (Donenfeld, "WireGuard: Next Generation Kernel Network Tunnel", NDSS 2017) has one suite and
negotiates none. The device has wireguard-go's default MTU of 1420.
"""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import AsyncExitStack

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tunnelbench.lab import messages
from tunnelbench.lab.features import TUN
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import Established, Gateway, Needs, ReadBack, Suite, Tunnel, Variant, suites
from tunnelbench.tunnels.daemons import place_files, start_daemon

INTERFACE = "wg0"
DIRECTORY = "/run/wireguard-keys"
PORT = 51820
READY_SECONDS = 20.0
"""How long a step may take; idle all take less than half a second together."""

_SUITE = Suite("chacha20-poly1305", "ChaCha20-Poly1305", "with the cipher")
# A log of what happens, though not to each packet; without the notice that kernels can do WireGuard too.
_ENVIRONMENT = {"LOG_LEVEL": "verbose", "WG_PROCESS_FOREGROUND": "1"}


class WireguardGo(Tunnel):
    """A tun device on both gateways, joined by wireguard-go."""

    name = "wireguard-go"
    title = "WireGuard (wireguard-go)"
    suites = suites(_SUITE)

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def needs(self, variant: Variant) -> Needs:
        """wireguard-go, the tool that configures it, and TUN devices."""
        return Needs(programs=frozenset({"wireguard-go", "wg"}), features=frozenset({TUN}))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts both ends, then has the left one begin a handshake."""
        left_key, right_key = X25519PrivateKey.generate(), X25519PrivateKey.generate()
        server = await _start(right, right_key, left_key, cleanup)
        client = await _start(left, left_key, right_key, cleanup)
        # A device that is to send keepalives sends the first one at once, which takes a handshake.
        await _keep_alive(left, right_key, "1")
        await client.line("Received handshake response", READY_SECONDS)
        await server.line("Receiving keepalive packet", READY_SECONDS)
        await _keep_alive(left, right_key, "off")

        async def read_back() -> ReadBack:
            shown = [await end.node.run("wg", "show", INTERFACE) for end in (left, right)]
            return ReadBack.agreed(read_status(completed.text) for completed in shown)

        return Established(
            wire=frozenset({f"ipv4 udp {PORT}"}),
            read_back=read_back,
            programs=(client, server),
        )


TUNNEL = WireguardGo()


async def _start(
    end: Gateway, own: X25519PrivateKey, peer: X25519PrivateKey, cleanup: AsyncExitStack
) -> Program:
    configuration = _configuration(end, own, peer).encode()
    await place_files(end.node, DIRECTORY, {f"{INTERFACE}.conf": configuration}, cleanup)
    # Here wireguard-go makes the socket by which it is configured, and leaves it when it is killed.
    await place_files(end.node, "/run/wireguard", {}, cleanup)
    daemon = await start_daemon(end.node, cleanup, "wireguard-go", "-f", INTERFACE, environment=_ENVIRONMENT)
    await daemon.line("UAPI listener started", READY_SECONDS)
    await end.node.run("wg", "setconf", INTERFACE, f"{DIRECTORY}/{INTERFACE}.conf")
    await end.node.configure(messages.SetLink(INTERFACE, up=True))
    await end.route_to_peer(cleanup, interface=INTERFACE)
    return daemon


def _configuration(end: Gateway, own: X25519PrivateKey, peer: X25519PrivateKey) -> str:
    networks = ", ".join(str(end.peer.inside.network(family)) for family in Family)
    return f"""\
[Interface]
PrivateKey = {_text(own.private_bytes_raw())}
ListenPort = {PORT}

[Peer]
PublicKey = {_public(peer)}
Endpoint = {end.peer.outside.ipv4.ip}:{PORT}
AllowedIPs = {networks}
"""


async def _keep_alive(end: Gateway, peer: X25519PrivateKey, interval: str) -> None:
    await end.node.run("wg", "set", INTERFACE, "peer", _public(peer), "persistent-keepalive", interval)


def _public(key: X25519PrivateKey) -> str:
    return _text(key.public_key().public_bytes_raw())


def _text(key: bytes) -> str:
    return b64encode(key).decode()


def read_status(text: str) -> ReadBack:
    """The only suite there is, if `wg show` tells of one peer with whom there was a handshake."""
    peers = re.findall(r"^peer: ", text, re.MULTILINE)
    handshakes = re.findall(r"^  latest handshake: ", text, re.MULTILINE)
    return ReadBack(_SUITE.name if len(peers) == len(handshakes) == 1 else None, text.strip())
