"""MACsec: encrypted Ethernet (IEEE 802.1AE) on the wire between the gateways, for reference.

It protects a link, not a path: there is no IP header of its own, and nothing of a packet but its Ethernet
addresses can be read. Keys are written straight into both kernels, as a key agreement (IEEE 802.1X) would do
it. The gateways are neighbours on the protected link and route between their sites over it; ARP and neighbour
discovery go through it, too. Each frame carries the sender's identifier (SCI), as Linux does it by default.
"""

from __future__ import annotations

import re
import secrets
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.lab import messages
from tunnelbench.lab.features import Feature
from tunnelbench.lab.node import Node
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead import layers as formats
from tunnelbench.tunnels.base import (
    KEYS_BY_HAND,
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
from tunnelbench.tunnels.point_to_point import INTERFACE, join, wire_of

_WIRE = "ethertype 0x88e5"
_TRY = """\
ip link add try-mac{bits} type dummy &&
ip link add link try-mac{bits} name try-sec{bits} type macsec cipher gcm-aes-{bits} encrypt on &&
ip macsec add try-sec{bits} tx sa 0 pn 1 on key 00 {key}
"""


@dataclass(frozen=True)
class MacsecSuite(Suite):
    """A suite and the length of its keys."""

    key_bits: int

    @property
    def cipher(self) -> str:
        """As ip-macsec(8) calls it."""
        return f"gcm-aes-{self.key_bits}"


SUITES = tuple(
    MacsecSuite(f"aes{bits}-gcm", f"AES-{bits}-GCM", "with the cipher", bits) for bits in (128, 256)
)


class Macsec(Tunnel):
    """A MACsec interface on both gateways' ends of the wire."""

    name = "macsec"
    title = "MACsec"
    suites = suites(*SUITES)
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """There is no IP header around frames."""
        if variant.outer is Family.IPV4:
            return None
        return "MACsec protects Ethernet frames: there is no IP version between the gateways to choose"

    def needs(self, variant: Variant) -> Needs:
        """MACsec with the cipher."""
        suite = _suite(variant)
        key = bytes(range(suite.key_bits // 8)).hex()
        check = ("sh", "-c", _TRY.format(bits=suite.key_bits, key=key))
        return Needs(features=frozenset({Feature(f"MACsec with {suite.encryption}", check)}))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Makes the interfaces, and gives each of them its own key and the other's."""
        cipher = _suite(variant).cipher
        ends = (left, right)
        for end in ends:
            await end.node.run(
                *("ip", "link", "add", "link", await wire_of(end), "name", INTERFACE, "type", "macsec"),
                *("cipher", cipher, "encrypt", "on"),
            )
            cleanup.push_async_callback(end.node.configure, messages.RemoveLink(INTERFACE))
        addresses = [await _hardware_address(end.node) for end in ends]
        keys = [secrets.token_hex(_suite(variant).key_bits // 8) for _ in ends]
        for number, end in enumerate(ends):
            peer = 1 - number
            channel = f"macsec add {INTERFACE} rx port 1 address {addresses[peer]}"
            await end.node.run(
                *("ip", "-batch", "-"),
                input=(
                    f"macsec add {INTERFACE} tx sa 0 pn 1 on key {number:02} {keys[number]}\n"
                    f"{channel}\n{channel} sa 0 pn 1 on key {peer:02} {keys[peer]}\n"
                ).encode(),
            )
        await join(left, right, INTERFACE, cleanup, ethernet=True)

        async def read_back() -> ReadBack:
            shown = [await end.node.run("ip", "macsec", "show", INTERFACE) for end in ends]
            return ReadBack.agreed(read_interface(completed.text) for completed in shown)

        return Established(wire=frozenset({_WIRE}), read_back=read_back, rekey_refusal=KEYS_BY_HAND)

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """MACsec's tag with the sender's identifier, and the check value."""
        return Encapsulation((formats.macsec(),))


TUNNEL = Macsec()


def _suite(variant: Variant) -> MacsecSuite:
    assert isinstance(variant.suite, MacsecSuite)
    return variant.suite


async def _hardware_address(node: Node) -> str:
    return (await node.run("cat", f"/sys/class/net/{INTERFACE}/address")).text.strip()


def read_interface(text: str) -> ReadBack:
    """The suite of an interface that encrypts, and has a key in use for each direction (ip-macsec(8))."""
    cipher = re.search(r"cipher suite: (\S+),", text)
    keys = re.findall(r"^    (TXSC|RXSC): .*\n        \d: PN \d+, state on,", text, re.MULTILINE)
    named = cipher[1].lower() if cipher and " encrypt on " in text and keys == ["TXSC", "RXSC"] else None
    return ReadBack(next((suite.name for suite in SUITES if suite.cipher == named), None), text.strip())
