"""What kernels said of their IPsec in real labs, which suites there are, and what can't be combined."""

from __future__ import annotations

import pytest

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels import all_tunnels, ipsec_manual
from tunnelbench.tunnels.base import Place
from tunnelbench.tunnels.ipsec_suites import CIPHERS, ESP_SUITES, as_esp
from tunnelbench.tunnels.xfrm import read_state

COMPRESSED_ENCRYPTED_AUTHENTICATED = """\
src fd00::2 dst fd00::1
\tproto ah spi 0xf6015bb7 reqid 2 mode transport
\treplay-window 0 flag af-unspec
\tauth-trunc hmac(sha1) 0x592fae07d5581e965d774adc7cc65fe9b9a79621 96
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
src fd00::2 dst fd00::1
\tproto esp spi 0x87bd912a reqid 2 mode transport
\treplay-window 0 flag af-unspec
\tenc cbc(aes) 0x4cf2c32d6c0ba8ff641378dd19cfa83e
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
src fd00::2 dst fd00::1
\tproto comp spi 0x00000b58 reqid 2 mode tunnel
\treplay-window 0 flag af-unspec
\tcomp deflate \n\
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
src fd00::2 dst fd00::1
\tproto 41 spi 0x00000002 reqid 0 mode tunnel
\treplay-window 0 \n\
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
"""
AUTHENTICATED = """\
src 192.168.0.2 dst 192.168.0.1
\tproto ah spi 0xa77f5b12 reqid 2 mode tunnel
\treplay-window 0 flag af-unspec
\tauth-trunc hmac(sha1) 0xc2004c774c021fd980e4b5fc125779629490d8d5 96
\tanti-replay context: seq 0x0, oseq 0x5b, bitmap 0x00000000
"""
IN_UDP = """\
src 192.168.0.2 dst 192.168.0.1
\tproto esp spi 0x8ec34687 reqid 2 mode tunnel
\treplay-window 0 flag af-unspec
\taead rfc4106(gcm(aes)) 0xfc0e3e71c16da7c53d123a9cf94301100b085481 128
\tencap type espinudp sport 4500 dport 4500 addr 0.0.0.0
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
"""
COUNTER_MODE = """\
src 192.168.0.2 dst 192.168.0.1
\tproto esp spi 0xbe7b8289 reqid 2 mode transport
\treplay-window 0 \n\
\tauth-trunc hmac(sha1) 0xe394346c5077917f8b533ca52bf2b89c80ac2713 96
\tenc rfc3686(ctr(aes)) 0xcc5f666539233e19534d45a62557ab572e94fd94
\tanti-replay context: seq 0x0, oseq 0x0, bitmap 0x00000000
\tsel src 0.0.0.0/0 dst 0.0.0.0/0 \n\
"""


def facts(protocol: str, mode: str, compression: str = "none", nat_traversal: str = "no") -> dict[str, str]:
    return {
        "protocol": protocol,
        "mode": mode,
        "compression": compression,
        "NAT traversal": nat_traversal,
    }


@pytest.mark.parametrize(
    ("said", "suite", "expected"),
    [
        (COMPRESSED_ENCRYPTED_AUTHENTICATED, "aes128-sha1", facts("ah+esp", "tunnel", "deflate")),
        (AUTHENTICATED, "null-sha1", facts("ah", "tunnel")),
        (IN_UDP, "aes128-gcm", facts("esp", "tunnel", nat_traversal="yes")),
        (COUNTER_MODE, "aes128-ctr-sha1", facts("esp", "transport")),
    ],
)
def test_the_kernel_says_suite_and_facts(said: str, suite: str, expected: dict[str, str]) -> None:
    found = read_state(said)
    assert found.suite == suite
    assert found.facts == expected


def test_directions_that_differ_agree_on_nothing() -> None:
    found = read_state(AUTHENTICATED + COUNTER_MODE.replace("src 192.168.0.2", "src 192.168.0.1"))
    assert found.suite is None
    assert found.facts == {}


def test_what_is_authenticated_twice_is_no_suite() -> None:
    esp = "enc cbc(aes) 0x4cf2c32d6c0ba8ff641378dd19cfa83e\n"
    twice = esp + "\tauth-trunc hmac(sha1) 0x592fae07d5581e965d774adc7cc65fe9b9a79621 96\n"
    assert read_state(COMPRESSED_ENCRYPTED_AUTHENTICATED.replace(esp, twice)).suite is None


def test_keys_are_left_out() -> None:
    text = read_state(COMPRESSED_ENCRYPTED_AUTHENTICATED).text
    assert "592fae07" not in text
    assert "4cf2c32d" not in text
    assert "spi 0xf6015bb7" in text


@pytest.mark.parametrize(
    ("suite", "options", "topology", "reason"),
    [
        ("aes128-sha1", {"protocol": "ah"}, "site-to-site", "AH only authenticates"),
        ("aes128-gcm", {"protocol": "ah+esp"}, "site-to-site", "share a suite's work"),
        ("des-none", {"protocol": "ah+esp"}, "site-to-site", "share a suite's work"),
        ("null-sha1", {"protocol": "ah", "nat-traversal": "yes"}, "site-to-site", "only ESP travels in UDP"),
        ("des-md5", {"mode": "transport"}, "site-to-site", "needs the topology host-to-host"),
    ],
)
def test_what_cannot_be_combined_is_refused(
    suite: str, options: dict[str, str], topology: str, reason: str
) -> None:
    refusal = ipsec_manual.TUNNEL.refusal(
        ipsec_manual.TUNNEL.variant(suite, options), Place("bookworm", topology)
    )
    assert reason in (refusal or "")


def test_transport_mode_has_no_other_ip_version() -> None:
    tunnel = ipsec_manual.TUNNEL
    variant = tunnel.variant("des-md5", {"mode": "transport"}, Family.IPV6)
    assert "keep their own IP version" in (tunnel.refusal(variant, Place(None, "host-to-host")) or "")
    default = tunnel.variant("des-md5", {"mode": "transport"})
    assert tunnel.refusal(default, Place(None, "host-to-host")) is None


def test_suites_are_named_after_their_transforms() -> None:
    suite = as_esp(ESP_SUITES["aes256-ctr-sha384"])
    assert (suite.encryption, suite.integrity, suite.icv_bits) == ("AES-256-CTR", "HMAC-SHA-384-192", 192)
    assert suite.strongswan == "aes256ctr-sha384"
    assert as_esp(ESP_SUITES["des-none"]).strongswan == "des"
    assert as_esp(ESP_SUITES["serpent128-md5"]).libreswan is None
    assert as_esp(ESP_SUITES["aes128-gcm"]).strongswan == "aes128gcm16"


def test_only_null_does_not_encrypt() -> None:
    plain = {suite.name.partition("-")[0] for suite in ESP_SUITES.values() if not suite.encrypts}
    assert plain == {"null"}
    assert [cipher.title for cipher in CIPHERS.values()].count("none") == 1


def test_what_is_tried_on_one_node_at_once_does_not_collide() -> None:
    features = {
        feature
        for tunnel in all_tunnels().values()
        for suite in tunnel.suites
        for feature in tunnel.needs(tunnel.variant(suite)).features
        if feature.check[:3] == ("ip", "xfrm", "state")
    }
    associations = [
        tuple(feature.check[feature.check.index(word) + 1] for word in ("src", "dst", "proto", "spi"))
        for feature in features
    ]
    assert len(associations) == len(set(associations)) > 80
