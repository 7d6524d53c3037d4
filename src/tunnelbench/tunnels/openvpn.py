"""OpenVPN between two gateways; a program encrypts each packet, or the kernel does where that is offloaded.

What is not named in the configuration is OpenVPN's default. So the device has an MTU of 1500, while `mssfix`
has TCP send segments whose encrypted packets fit 1492 bytes: TCP is not fragmented, but a UDP datagram that
fills the MTU leaves the gateway in two fragments. Both ends are certain of each other by certificates, or by
a static key.

- `device=tap` carries Ethernet frames, but routes into them: each gateway is the other's next hop over the
  tap device. Nothing is bridged, so hosts see no frames of the other site.
- `keying=static` has neither a handshake nor new keys; OpenVPN has no AEADs there.
- `compression=lz4` is `lz4-v2`, which adds nothing to what does not shrink; `lzo` adds a byte.
- `renegotiation=by-volume` makes new keys every 64 MB. Ciphers with blocks of 64 bits get them so anyway, by
  OpenVPN's own default. It is the one way to have new keys when they are wanted: OpenVPN takes no order for
  them, but payload can be sent until they are due.
- `offload=yes` needs a kernel that knows OpenVPN's data channel: with OpenVPN 2.6 the module ovpn-dco.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from tunnelbench.lab.features import TUN, Feature
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Option,
    Place,
    ReadBack,
    Tunnel,
    Variant,
    options,
)
from tunnelbench.tunnels.certificates import Authority, Role
from tunnelbench.tunnels.daemons import all_print, place_files, printed, start_daemon
from tunnelbench.tunnels.openvpn_configuration import (
    DIRECTORY,
    FILE,
    PORT,
    between_gateways,
    certificates,
    device,
    static_key,
)
from tunnelbench.tunnels.openvpn_overhead import encapsulation
from tunnelbench.tunnels.openvpn_read_back import handshake_seconds, read_link, read_log
from tunnelbench.tunnels.openvpn_suites import SUITES, as_openvpn, has_cipher
from tunnelbench.tunnels.point_to_point import INNER_ADDRESSES

READY_SECONDS = 20.0
"""How long both ends may take together; idle they take one to two."""

RENEWAL_SECONDS = 120.0
"""How long it may take to send what keys are good for, in the slowest of labs."""

_LISTENS = "link remote|Listening for incoming TCP connection"
_OFFLOADED_CIPHERS = frozenset({"AES-128-GCM", "AES-192-GCM", "AES-256-GCM", "CHACHA20-POLY1305"})
_OFFLOAD = Feature(
    "OpenVPN's data channel in the kernel (module ovpn-dco)",
    ("ip", "link", "add", "try-ovpn", "type", "ovpn-dco"),
)


class OpenVpn(Tunnel):
    """OpenVPN between the gateways."""

    name = "openvpn"
    title = "OpenVPN"
    suites = SUITES
    options = options(
        Option("device", ("tun", "tap"), "Whether IP packets or Ethernet frames are carried."),
        Option("carrier", ("udp", "tcp"), "What OpenVPN's packets travel in."),
        Option("keying", ("tls", "static"), "Whether TLS agrees on keys, or both ends were given one."),
        Option("compression", ("none", "lzo", "lz4"), "How payload is compressed before it is encrypted."),
        Option(
            "renegotiation",
            ("hourly", "by-volume"),
            "When TLS makes new keys: each hour, or each 64 MB, too.",
        ),
        Option("offload", ("no", "yes"), "Whether the kernel encrypts packets (data channel offload)."),
    )
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Only where the data channel is offloaded."""
        return variant["offload"] == "yes"

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """What OpenVPN itself excludes, and what a release's OpenVPN has not yet."""
        if variant["keying"] == "static":
            return _refused_with_static_key(variant)
        if variant["offload"] == "yes":
            return _refused_with_offload(variant, place)
        return None

    def needs(self, variant: Variant) -> Needs:
        """OpenVPN with the suite's cipher; TUN devices, or the kernel's own data channel."""
        cipher = as_openvpn(variant.suite).cipher
        features = {_OFFLOAD if variant["offload"] == "yes" else TUN}
        if cipher != "none":
            features.add(has_cipher(cipher))
        return Needs(programs=frozenset({"openvpn"}), features=frozenset(features))

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """The data channel in UDP or TCP."""
        return encapsulation(variant)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts the server on the right gateway, then the client on the left one."""
        secrets = _secrets(left, right, variant)
        server = await _start(right, "server", variant, secrets["server"], cleanup)
        client = await _start(left, "client", variant, secrets["client"], cleanup)
        daemons = (server, client)
        if variant["keying"] == "static":
            await _send_first_packet(left)
        await all_print("Initialization Sequence Completed", daemons, READY_SECONDS)
        for end, addresses in ((left, INNER_ADDRESSES[1]), (right, INNER_ADDRESSES[0])):
            next_hop = {family: addresses.address(family) for family in Family}
            via = next_hop if variant["device"] == "tap" else None
            await end.route_to_peer(cleanup, interface=device(variant), via=via)
        handshakes = [handshake_seconds(printed(daemon)) for daemon in daemons]

        async def read_back() -> ReadBack:
            return ReadBack.agreed([await _read_back(end, daemon, variant) for end, daemon in ends])

        async def rekey() -> None:
            await _use_keys_up(left, daemons)

        ends = ((right, server), (left, client))
        return Established(
            wire=frozenset({f"{left.outer.value} {variant['carrier']} {PORT}"}),
            read_back=read_back,
            programs=daemons,
            facts={name: variant[name] for name in ("device", "carrier", "keying", "compression", "offload")},
            compresses=variant["compression"] != "none",
            rekey=rekey if _renews_by_volume(variant) else None,
            handshake_seconds=max((seconds for seconds in handshakes if seconds is not None), default=None),
        )


TUNNEL = OpenVpn()


def _refused_with_static_key(variant: Variant) -> str | None:
    if as_openvpn(variant.suite).is_aead:
        return "OpenVPN uses AEADs with TLS keys only, never with a static key"
    if variant["renegotiation"] != "hourly":
        return "a static key is never renewed, so there is nothing to renegotiate"
    if variant["offload"] == "yes":
        return "OpenVPN offloads its data channel with TLS keys only, never with a static key"
    return None


def _refused_with_offload(variant: Variant, place: Place) -> str | None:
    if as_openvpn(variant.suite).cipher not in _OFFLOADED_CIPHERS:
        return "the kernel's data channel has AES-GCM and ChaCha20-Poly1305 only"
    if variant["device"] == "tap":
        return "the kernel's data channel carries IP packets only, no Ethernet frames"
    if variant["compression"] != "none":
        return "the kernel's data channel does not compress"
    if variant["renegotiation"] == "by-volume":
        return "OpenVPN does not see how much the kernel's data channel has sent"
    if place.release == "bullseye":
        return "bullseye's OpenVPN 2.5 has no data channel offload; bookworm's and trixie's 2.6 have it"
    return None


def _secrets(left: Gateway, right: Gateway, variant: Variant) -> dict[Role, bytes]:
    if variant["keying"] == "static":
        key = static_key()
        return {"server": key, "client": key}
    authority = Authority()
    return {
        "server": certificates(authority, authority.issue(right.site.gateway, "server")),
        "client": certificates(authority, authority.issue(left.site.gateway, "client")),
    }


async def _start(
    end: Gateway, role: Role, variant: Variant, secret: bytes, cleanup: AsyncExitStack
) -> Program:
    configuration = "\n".join(between_gateways(end, role, variant)).encode()
    await place_files(end.node, DIRECTORY, {FILE: configuration + secret}, cleanup)
    daemon = await start_daemon(end.node, cleanup, "openvpn", "--config", f"{DIRECTORY}/{FILE}")
    await daemon.line(_LISTENS, READY_SECONDS)
    return daemon


async def _send_first_packet(left: Gateway) -> None:
    """With a static key neither end calls itself ready before a packet has come; the echo's answer is one."""
    await left.node.run(
        *("ping", "-c", "1", "-i", "0.2", "-w", str(round(READY_SECONDS))),
        str(INNER_ADDRESSES[1].ipv4.ip), timeout=READY_SECONDS + 1, check=False,
    )  # fmt: skip


def _renews_by_volume(variant: Variant) -> bool:
    if variant["keying"] == "static":
        return False
    return variant["renegotiation"] == "by-volume" or as_openvpn(variant.suite).has_small_blocks


async def _use_keys_up(left: Gateway, daemons: Sequence[Program]) -> None:
    """Sends echo requests through the tunnel until both ends have made new keys."""
    began = asyncio.get_running_loop().time()
    peer = str(INNER_ADDRESSES[1].ipv4.ip)
    flood = await left.node.spawn("ping", "-f", "-q", "-l", "16", "-s", "8000", peer)
    try:
        await all_print("Outgoing Data Channel: ", daemons, RENEWAL_SECONDS, after=began)
    finally:
        await flood.stop()


async def _read_back(end: Gateway, daemon: Program, variant: Variant) -> ReadBack:
    logged = read_log(printed(daemon))
    shown = await end.node.run("ip", "-json", "-details", "link", "show", device(variant))
    return ReadBack(logged.suite, logged.text, {**logged.facts, **read_link(shown.text)})
