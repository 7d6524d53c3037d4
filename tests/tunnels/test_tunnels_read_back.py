"""What implementations said in real labs, and which suite that means; keys never come along."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tunnelbench.tunnels import openvpn_read_back, wireguard_device, xfrm
from tunnelbench.tunnels.base import ReadBack

OPENVPN_CBC = """\
  data_ciphers_fallback = 'AES-256-CBC'
peer info: IV_CIPHERS=AES-128-CBC
P2P mode NCP negotiation result: TLS_export=1, DATA_v2=1, peer-id 2519940, cipher=AES-128-CBC
Outgoing dynamic tls-crypt: Cipher 'AES-256-CTR' initialized with 256 bit key
Outgoing dynamic tls-crypt: Using 256 bit message hash 'SHA256' for HMAC authentication
Outgoing Data Channel: Cipher 'AES-128-CBC' initialized with 128 bit key
Outgoing Data Channel: Using 160 bit message hash 'SHA1' for HMAC authentication
Incoming Data Channel: Cipher 'AES-128-CBC' initialized with 128 bit key
Incoming Data Channel: Using 160 bit message hash 'SHA1' for HMAC authentication
Initialization Sequence Completed
Data Channel: cipher 'AES-128-CBC', auth 'SHA1', peer-id: 0
"""
OPENVPN_SMALL_BLOCKS = """\
Outgoing Data Channel: Cipher 'DES-EDE3-CBC' initialized with 192 bit key
WARNING: INSECURE cipher (DES-EDE3-CBC) with block size less than 128 bit (64 bit).
Outgoing Data Channel: Using 256 bit message hash 'SHA256' for HMAC authentication
Incoming Data Channel: Cipher 'DES-EDE3-CBC' initialized with 192 bit key
WARNING: INSECURE cipher (DES-EDE3-CBC) with block size less than 128 bit (64 bit).
Incoming Data Channel: Using 256 bit message hash 'SHA256' for HMAC authentication
WARNING: cipher with small block size in use, reducing reneg-bytes to 64MB to mitigate SWEET32 attacks.
Initialization Sequence Completed
"""
OPENVPN_AEAD = """\
Outgoing Data Channel: Cipher 'CHACHA20-POLY1305' initialized with 256 bit key
Incoming Data Channel: Cipher 'CHACHA20-POLY1305' initialized with 256 bit key
Initialization Sequence Completed
Data Channel: cipher 'CHACHA20-POLY1305', peer-id: 0
"""
OPENVPN_NULL = """\
P2P mode NCP negotiation result: TLS_export=1, DATA_v2=1, peer-id 1710758, cipher=none
Outgoing Data Channel: Using 160 bit message hash 'SHA1' for HMAC authentication
Incoming Data Channel: Using 160 bit message hash 'SHA1' for HMAC authentication
Initialization Sequence Completed
Data Channel: cipher '[null-cipher]', auth 'SHA1', peer-id: 0
"""
WIREGUARD = """\
interface: wg0
  public key: IkoEOKr/V3sAFo9SGu9f+ObIUgjeYtT3MVlARhGU5RM=
  private key: (hidden)
  listening port: 51820

peer: m+H5ankghOEKZNNM5NKpuBQ72bScy++GRCrugKjkMQM=
  endpoint: 192.168.0.2:51820
  allowed ips: 10.2.0.0/24, fd00:2::/64
  latest handshake: 4 seconds ago
  transfer: 92 B received, 180 B sent
"""
ESP_CBC = """\
src 192.168.0.2 dst 192.168.0.1
\tproto esp spi 0x40614e27 reqid 2 mode tunnel
\treplay-window 0 flag af-unspec
\tauth-trunc hmac(sha1) 0x8309900309226706fc47a03e9913ec5715507767 96
\tenc cbc(aes) 0xb8355db81276fcf2e6902f6dfc1a2af7
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
src 192.168.0.1 dst 192.168.0.2
\tproto esp spi 0x603df688 reqid 1 mode tunnel
\treplay-window 0 flag af-unspec
\tauth-trunc hmac(sha1) 0x60e16ee994a5694f4a3a88bd52d023a0174a7b5a 96
\tenc cbc(aes) 0x807653075abb75d1dc4d4c3ed27083d8
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
"""
ESP_AEAD = """\
src 192.168.0.2 dst 192.168.0.1
\tproto esp spi 0x644640c3 reqid 2 mode tunnel
\treplay-window 0 flag af-unspec
\taead rfc4106(gcm(aes)) 0xe01754b35a31f1827537296082c64299bbd7fb36 128
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
"""
ESP_NULL = """\
src 192.168.0.2 dst 192.168.0.1
\tproto esp spi 0x4fc49815 reqid 2 mode tunnel
\treplay-window 0 flag af-unspec
\tauth-trunc hmac(md5) 0x9fa461accccf2d67274a076d173bae47 96
\tenc ecb(cipher_null) \n\
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
"""

Reader = Callable[[str], ReadBack]


@pytest.mark.parametrize(
    ("read", "said", "suite"),
    [
        (openvpn_read_back.read_log, OPENVPN_CBC, "aes-128-cbc-sha1"),
        (openvpn_read_back.read_log, OPENVPN_SMALL_BLOCKS, "des-ede3-cbc-sha256"),
        (openvpn_read_back.read_log, OPENVPN_AEAD, "chacha20-poly1305"),
        (openvpn_read_back.read_log, OPENVPN_NULL, "none-sha1"),
        (wireguard_device.read_status, WIREGUARD, "chacha20-poly1305"),
        (xfrm.read_state, ESP_CBC, "aes128-sha1"),
        (xfrm.read_state, ESP_AEAD, "aes128-gcm"),
        (xfrm.read_state, ESP_NULL, "null-md5"),
    ],
)
def test_the_suite_is_what_the_implementation_says(read: Reader, said: str, suite: str) -> None:
    assert read(said).suite == suite


@pytest.mark.parametrize(
    ("read", "said", "first", "second"),
    [
        (
            openvpn_read_back.read_log,
            OPENVPN_CBC,
            "Incoming Data Channel: Cipher 'AES-128",
            "Incoming Data Channel: Cipher 'AES-256",
        ),
        (openvpn_read_back.read_log, OPENVPN_CBC, "Incoming Data Channel", "Lost Data Channel"),
        (openvpn_read_back.read_log, OPENVPN_AEAD, "CHACHA20-POLY1305", "ARIA-128-GCM"),
        (wireguard_device.read_status, WIREGUARD, "  latest handshake: 4 seconds ago\n", ""),
        (wireguard_device.read_status, WIREGUARD, "peer: ", "stranger: "),
        (xfrm.read_state, ESP_CBC, "enc cbc(aes) 0x8076", "enc cbc(des3_ede) 0x8076"),
        (xfrm.read_state, ESP_CBC, "0x807653075abb75d1dc4d4c3ed27083d8", "0x807653075abb75d1"),
        (xfrm.read_state, ESP_CBC, "7767 96", "7767 128"),
    ],
)
def test_what_is_no_suite_of_both_directions_is_none(
    read: Reader, said: str, first: str, second: str
) -> None:
    assert first in said
    assert read(said.replace(first, second)).suite is None


@pytest.mark.parametrize("read", [openvpn_read_back.read_log, wireguard_device.read_status, xfrm.read_state])
def test_silence_means_no_suite(read: Reader) -> None:
    assert read("") == ReadBack(None, "")


def test_new_keys_count_and_old_ones_do_not() -> None:
    assert openvpn_read_back.read_log(OPENVPN_CBC + OPENVPN_CBC).suite == "aes-128-cbc-sha1"
    assert openvpn_read_back.read_log(OPENVPN_NULL + OPENVPN_NULL).suite == "none-sha1"
    assert openvpn_read_back.read_log(OPENVPN_CBC + OPENVPN_NULL).suite == "none-sha1"
    assert openvpn_read_back.read_log(OPENVPN_CBC + OPENVPN_SMALL_BLOCKS).suite == "des-ede3-cbc-sha256"


def test_ends_that_differ_have_no_suite_in_common() -> None:
    ends = [openvpn_read_back.read_log(OPENVPN_CBC), openvpn_read_back.read_log(OPENVPN_AEAD)]
    together = ReadBack.agreed(ends)
    assert together.suite is None
    assert "AES-128-CBC" in together.text
    assert "CHACHA20-POLY1305" in together.text
    assert ReadBack.agreed(ends[:1] * 2).suite == "aes-128-cbc-sha1"


@pytest.mark.parametrize("said", [ESP_CBC, ESP_AEAD, ESP_NULL])
def test_keys_of_associations_are_left_out(said: str) -> None:
    keys = [word for word in said.split() if word.startswith("0x") and len(word) > 12]
    text = xfrm.read_state(said).text
    assert keys
    assert not [key for key in keys if key[2:] in text]
    assert f"({(len(keys[0]) - 2) * 4} bits)" in text


def test_only_the_lines_about_the_suite_are_kept_of_a_log() -> None:
    assert openvpn_read_back.read_log(OPENVPN_AEAD).text.splitlines() == OPENVPN_AEAD.splitlines()[:2]
