"""What OpenConnect adds to packets (draft-mavrogiannopoulos-openconnect), and how large it lets them be."""

from __future__ import annotations

from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Layer, layers
from tunnelbench.overhead.algorithms import block_bytes, is_cbc
from tunnelbench.tunnels.base import Variant

_UDP, _KIND, _CSTP = 8, 1, 8
_UDP_AS_COUNTED_OVER_IPV6 = 20
"""The client's search for the MTU of a path of IPv6 takes UDP's header for so long."""


def encapsulation(variant: Variant) -> Encapsulation:
    """How a variant wraps packets."""
    suite, outer = variant.suite, layers.ip(variant.outer)
    compresses = variant["compression"] != "none"
    if variant["carrier"] == "dtls":
        record = layers.dtls_record(suite.encryption, suite.integrity)
        kind = layers.header("CSTP kind of packet", "draft-mavrogiannopoulos-openconnect", _KIND)
        return Encapsulation(
            (outer, layers.udp(), record, kind),
            inner_mtu_over=lambda mtu: _datagram_mtu(variant, record, mtu),
            compresses=compresses,
        )
    record = layers.tls_record(suite.encryption, suite.integrity, _tls_version(suite.encryption))
    cstp = layers.header("CSTP", "draft-mavrogiannopoulos-openconnect", _CSTP)
    # Whatever the carrier, there is to be room for UDP.
    return Encapsulation(
        (outer, layers.tcp(), record, cstp),
        inner_mtu_over=lambda mtu: mtu - outer.size(0) - _UDP,
        compresses=compresses,
    )


def _datagram_mtu(variant: Variant, record: Layer, wire_mtu: int) -> int:
    """The client's, which over IPv4 is what the server offers, and over IPv6 what the client thinks of it."""
    header = layers.ip(variant.outer).size(0)
    if variant.outer is Family.IPV4:
        return wire_mtu - header - _UDP - _KIND - _unfilled(record, variant.suite.encryption)
    room = wire_mtu - _unfilled(record, variant.suite.encryption)
    if is_cbc(variant.suite.encryption):
        block = block_bytes(variant.suite.encryption)
        room = (room + block) // block * block - 1
    return room - header - _UDP_AS_COUNTED_OVER_IPV6 - _KIND


def _unfilled(record: Layer, encryption: str) -> int:
    """What GnuTLS sets aside for a record: a whole block of padding where there are blocks."""
    fixed = sum(field.size for field in (*record.before, *record.after))
    return fixed + (block_bytes(encryption) if is_cbc(encryption) else 0)


def _tls_version(encryption: str) -> str:
    has_new = encryption.startswith(("AES-128-", "AES-256-GCM", "ChaCha20")) and not is_cbc(encryption)
    return "1.3" if has_new else "1.2"
