"""Layers against sizes worked out by hand from their formats."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.overhead import Field, Kind, Layer, Padding, layers
from tunnelbench.overhead.encapsulation import fields_around, size_around

SHA1 = "HMAC-SHA-1-96"
READY_MADE = [
    layers.ethernet(),
    layers.ipv4(),
    layers.ipv6(),
    layers.udp(),
    layers.tcp(),
    layers.gre(key=True),
    layers.vxlan(),
    layers.l2tp(),
    layers.ppp(),
    layers.mppe(),
    layers.pptp_gre(),
    layers.ah(SHA1),
    layers.ipcomp(),
    layers.macsec(),
    layers.wireguard(),
    layers.esp("AES-128-CBC", SHA1),
    layers.openvpn_data("Blowfish-128-CBC", "HMAC-SHA-1"),
    layers.ssh_packet("3DES-CBC", "HMAC-MD5"),
    layers.tls_record("AES-128-CBC", "HMAC-SHA-1", "1.2"),
    layers.dtls_record("AES-128-GCM", "with the cipher"),
]
inner_sizes = st.integers(1, 9000)


@pytest.mark.parametrize(
    ("layer", "inner", "expected"),
    [
        # 8 header, 16 IV, 40 + 2 and 6 of padding are 3 blocks, 12 check value
        (layers.esp("AES-128-CBC", SHA1), 40, 8 + 16 + 48 + 12),
        (layers.esp("AES-128-CBC", SHA1), 46, 8 + 16 + 48 + 12),
        (layers.esp("AES-128-CBC", SHA1), 47, 8 + 16 + 64 + 12),
        (layers.esp("DES-CBC", "HMAC-MD5-96"), 38, 8 + 8 + 40 + 12),
        (layers.esp("none", SHA1), 39, 8 + 44 + 12),
        (layers.esp("AES-128-GCM", "with the cipher"), 39, 8 + 8 + 44 + 16),
        (layers.esp("AES-128-CTR", "HMAC-SHA-256-128"), 39, 8 + 8 + 44 + 16),
        (layers.ah(SHA1), 100, 124),
        (layers.ah("HMAC-SHA-256-128"), 100, 132),
        (layers.ah("HMAC-SHA-256-128", aligned=4), 100, 128),
        (layers.wireguard(), 33, 16 + 48 + 16),
        (layers.wireguard(), 1419, 16 + 1420 + 16),
        (layers.wireguard(None), 1419, 16 + 1424 + 16),
        # opcode and peer 4, tag 16, packet number 4
        (layers.openvpn_data("AES-128-GCM", "with the cipher"), 100, 124),
        # opcode and peer 4, HMAC 20, IV 16; packet number 4 and 28 fill two blocks, padding a third
        (layers.openvpn_data("AES-128-CBC", "HMAC-SHA-1"), 28, 4 + 20 + 16 + 48),
        (layers.openvpn_data("AES-128-CBC", "HMAC-SHA-1"), 27, 4 + 20 + 16 + 32),
        (layers.openvpn_data("none", "HMAC-SHA-1"), 28, 4 + 20 + 4 + 28),
        (layers.openvpn_data("AES-128-CBC", "HMAC-SHA-1", static_key=True), 24, 20 + 16 + 48),
        # length 4, padding length 1 and 23 bytes need 4 of padding: two blocks
        (layers.ssh_packet("AES-128-CBC", "HMAC-SHA-1"), 23, 32 + 20),
        (layers.ssh_packet("AES-128-CBC", "HMAC-SHA-1"), 24, 48 + 20),
        (layers.ssh_packet("AES-128-CBC", "HMAC-SHA-1", encrypt_then_mac=True), 27, 4 + 32 + 20),
        (layers.ssh_packet("AES-128-GCM", "with the cipher"), 27, 4 + 32 + 16),
        (layers.ssh_packet("ChaCha20-Poly1305", "with the cipher"), 28, 4 + 40 + 16),
        (layers.tls_record("AES-128-GCM", "with the cipher", "1.3"), 100, 5 + 100 + 1 + 16),
        (layers.tls_record("AES-128-GCM", "with the cipher", "1.2"), 100, 5 + 8 + 100 + 16),
        (layers.tls_record("AES-128-CBC", "HMAC-SHA-1", "1.2"), 47, 5 + 16 + 48 + 20),
        (layers.tls_record("AES-128-CBC", "HMAC-SHA-1", "1.2"), 48, 5 + 16 + 64 + 20),
        (layers.dtls_record("3DES-CBC", "HMAC-SHA-1"), 95, 13 + 8 + 96 + 20),
        (layers.dtls_record("ChaCha20-Poly1305", "with the cipher"), 100, 13 + 100 + 16),
        (layers.macsec(), 100, 132),
    ],
)
def test_sizes_worked_out_by_hand(layer: Layer, inner: int, expected: int) -> None:
    assert layer.size(inner) == expected


@given(st.sampled_from(READY_MADE), inner_sizes)
def test_a_size_is_the_sum_of_its_fields(layer: Layer, inner: int) -> None:
    fields = fields_around([layer], [Field("payload", inner, Kind.PAYLOAD)])
    assert sum(field.size for field in fields) == layer.size(inner)
    assert all(field.size > 0 for field in fields)


@given(st.lists(st.sampled_from(READY_MADE), max_size=5), inner_sizes)
def test_more_inside_is_never_less_outside(several: list[Layer], inner: int) -> None:
    assert size_around(several, inner + 1) >= size_around(several, inner) >= inner


@given(inner_sizes, st.integers(1, 64), st.integers(0, 8), st.integers(0, 8))
def test_padding_fills_blocks_and_no_more(inner: int, block: int, counted: int, minimum: int) -> None:
    padding = Padding(block, counted, minimum).size(inner)
    assert (inner + counted + padding) % block == 0
    assert minimum <= padding < minimum + block


def test_an_integrity_check_of_unknown_size_is_refused() -> None:
    with pytest.raises(ValueError, match="HMAC-TIGER"):
        layers.esp("AES-128-CBC", "HMAC-TIGER")
