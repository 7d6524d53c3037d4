"""OpenVPN between two gateways, or from clients to one; a program encrypts each packet, or the kernel.

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
  them, but payload can be sent until they are due. It looks every few seconds, a new tunnel every 15.
- `offload=yes` needs a kernel that knows OpenVPN's data channel: with OpenVPN 2.6 the module ovpn-dco.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AsyncExitStack

from tunnelbench.lab.features import TUN, Feature
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
from tunnelbench.tunnels.daemons import all_print
from tunnelbench.tunnels.openvpn_configuration import (
    FILE,
    between_gateways,
    certificates,
    device,
    static_key,
)
from tunnelbench.tunnels.openvpn_daemon import (
    READY_SECONDS,
    End,
    asked,
    longest_handshake,
    read_back,
    rekey_refusal,
    renews_by_volume,
    start,
    use_keys_up,
    wire,
)
from tunnelbench.tunnels.openvpn_overhead import encapsulation
from tunnelbench.tunnels.openvpn_remote_access import serve
from tunnelbench.tunnels.openvpn_suites import SUITES, as_openvpn, has_cipher
from tunnelbench.tunnels.point_to_point import INNER_ADDRESSES

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
    topologies = frozenset({"site-to-site", "host-to-host", "remote-access"})

    def in_kernel(self, variant: Variant) -> bool:
        """Only where the data channel is offloaded."""
        return variant["offload"] == "yes"

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """What OpenVPN itself excludes, and what a release's OpenVPN has not yet."""
        if variant["keying"] == "static":
            return _refused_with_static_key(variant, place)
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
        daemons = (server.daemon, client.daemon)
        if variant["keying"] == "static":
            await _send_first_packet(left)
        await all_print("Initialization Sequence Completed", daemons, READY_SECONDS)
        for gateway, addresses in zip((left, right), reversed(INNER_ADDRESSES), strict=True):
            next_hop = {family: addresses.address(family) for family in Family}
            via = next_hop if variant["device"] == "tap" else None
            await gateway.route_to_peer(cleanup, interface=device(variant), via=via)

        async def read_both_back() -> ReadBack:
            return ReadBack.agreed([await read_back(server, variant), await read_back(client, variant)])

        async def rekey() -> None:
            await use_keys_up([left.node], INNER_ADDRESSES[1].ipv4.ip, (server, client))

        return Established(
            wire=wire(left, variant),
            read_back=read_both_back,
            programs=daemons,
            facts=asked(variant),
            compresses=variant["compression"] != "none",
            rekey=rekey if renews_by_volume(variant) else None,
            rekey_refusal=rekey_refusal(variant),
            handshake_seconds=longest_handshake(daemons),
        )

    async def serve(
        self, server: Gateway, clients: Sequence[Gateway], variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts the server, then all clients at once."""
        return await serve(server, clients, variant, cleanup)


TUNNEL = OpenVpn()


def _refused_with_static_key(variant: Variant, place: Place) -> str | None:
    if as_openvpn(variant.suite).is_aead:
        return "OpenVPN uses AEADs with TLS keys only, never with a static key"
    if place.topology == "remote-access":
        return "a static key joins two ends, so a server for clients can't use one"
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


async def _start(end: Gateway, role: Role, variant: Variant, secret: bytes, cleanup: AsyncExitStack) -> End:
    configuration = "\n".join(between_gateways(end, role, variant)).encode()
    return End(end.node, await start(end.node, {FILE: configuration + secret}, variant, cleanup))


async def _send_first_packet(left: Gateway) -> None:
    """With a static key neither end calls itself ready before a packet has come; the echo's answer is one."""
    await left.node.run(
        *("ping", "-c", "1", "-i", "0.2", "-w", str(round(READY_SECONDS))),
        str(INNER_ADDRESSES[1].ipv4.ip), timeout=READY_SECONDS + 1, check=False,
    )  # fmt: skip
