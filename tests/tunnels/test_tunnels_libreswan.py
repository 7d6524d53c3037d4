"""What libreswan and the kernel said in real labs, and what that means."""

from __future__ import annotations

import pytest

from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.libreswan_status import all_indices, indices, read_status

BOTH = ("ipv4", "ipv6")
STATUS = """\
000 algorithm ESP encrypt: name=AES_CBC, keysizemin=128, keysizemax=256
000 "ipv4":   newest IKE SA: #1; newest IPsec SA: #4; conn serial: $1;
000 "ipv4":   IKE algorithms: AES_CBC_128-HMAC_SHA2_256-MODP2048
000 "ipv4":   IKEv2 algorithm newest: AES_CBC_128-HMAC_SHA2_256-DH31
000 "ipv4":   ESP algorithms: AES_CBC_128-HMAC_SHA1_96
000 "ipv4":   ESP algorithm newest: AES_CBC_128-HMAC_SHA1_96; pfsgroup=<N/A>
000 "ipv6":   newest IKE SA: #0; newest IPsec SA: #3; conn serial: $2;
000 "ipv6":   IKE algorithms: AES_CBC_128-HMAC_SHA2_256-MODP2048
000 "ipv6":   ESP algorithm newest: AES_CBC_128-HMAC_SHA1_96; pfsgroup=<N/A>
000 #1: "ipv4":500 STATE_V2_ESTABLISHED_IKE_SA (established IKE SA); REKEY in 27684s; newest; idle;
000 #2: "ipv4":500 STATE_V2_ESTABLISHED_CHILD_SA (established Child SA); REKEY in 28075s; IKE SA #1; idle;
000 #2: "ipv4" esp.fb62192f@192.168.0.2 esp.26cd50f4@192.168.0.1 tun.0@192.168.0.2 tun.0@192.168.0.1
000 #4: "ipv4":500 STATE_V2_ESTABLISHED_CHILD_SA (established Child SA); newest; eroute owner; idle;
000 #4: "ipv4" esp.ea907d9c@192.168.0.2 esp.f1c4b25e@192.168.0.1 tun.0@192.168.0.2 tun.0@192.168.0.1
000 #3: "ipv6":500 STATE_V2_ESTABLISHED_CHILD_SA (established Child SA); newest; eroute owner; idle;
000 #3: "ipv6" esp.32e31f95@192.168.0.2 esp.ed74b244@192.168.0.1 tun.0@192.168.0.2 tun.0@192.168.0.1
"""
STATE = "".join(
    f"src 192.168.0.{source} dst 192.168.0.{3 - source}\n"
    f"\tproto esp spi 0x{index} reqid 16393 mode tunnel\n"
    "\treplay-window 0 flag af-unspec esn\n"
    "\tauth-trunc hmac(sha1) 0x73eef1ffe6e3c820d3b3f1eac158ad7f4db305e5 96\n"
    "\tenc cbc(aes) 0xcd4ebf0c9642934db2118e9fc492879e\n"
    "\tanti-replay esn context:\n"
    "\t seq-hi 0x0, seq 0x0, oseq-hi 0x0, oseq 0x0\n"
    for index, source in (("ea907d9c", 1), ("f1c4b25e", 2), ("32e31f95", 1), ("ed74b244", 2))
)


def test_the_newest_pair_of_each_connection_is_in_use() -> None:
    assert indices(STATUS) == {
        "ipv4": frozenset({0xEA907D9C, 0xF1C4B25E}),
        "ipv6": frozenset({0x32E31F95, 0xED74B244}),
    }
    assert len(all_indices(STATUS)) == 3


@pytest.mark.parametrize("pair", ["Child", "IPsec"])
def test_version_5_says_the_same_without_numbers_before_its_lines(pair: str) -> None:
    said = STATUS.replace("000 ", "")
    for number, other in (("4", "1"), ("3", "0")):
        older = f"newest IKE SA: #{other}; newest IPsec SA: #{number};"
        said = said.replace(older, f"routing: routed-tunnel; established {pair} SA: #{number};")
    assert indices(said) == indices(STATUS)
    assert all_indices(said) == all_indices(STATUS)
    assert read_status(said, STATE, BOTH).suite == "aes128-sha1"


def test_over_ipv6_colons_stand_where_points_do_over_ipv4() -> None:
    line = '000 #2: "ipv4" esp:d3839a75@fd00::2 esp:88812713@fd00::1 tun:0@fd00::2 tun:0@fd00::1 Traffic: '
    assert all_indices(line) == {frozenset({0xD3839A75, 0x88812713})}


def test_suite_and_facts_are_those_of_pluto_and_of_the_kernel() -> None:
    read = read_status(STATUS, STATE, BOTH)
    assert read.suite == "aes128-sha1"
    assert read.facts["IKE version"] == "ikev2"
    assert read.facts["DH group"] == "curve25519"
    assert read.facts["NAT traversal"] == "no"
    assert "73eef1ff" not in read.text


def test_version_4_gives_no_cipher_a_key_length() -> None:
    status = STATUS.replace("AES_CBC_128-HMAC_SHA1_96;", "NULL_000-HMAC_SHA1_96;")
    state = STATE.replace("enc cbc(aes) 0xcd4ebf0c9642934db2118e9fc492879e", "enc ecb(cipher_null) ")
    assert read_status(status, state, BOTH).suite == "null-sha1"


def test_where_they_differ_there_is_no_suite() -> None:
    assert (
        read_status(STATUS.replace("AES_CBC_128-HMAC_SHA1_96;", "NULL-HMAC_MD5_96;"), STATE, BOTH).suite
        is None
    )
    assert read_status(STATUS, STATE.replace("hmac(sha1)", "hmac(md5)"), BOTH).suite is None
    assert read_status(STATUS, STATE, ("ipv4",)).suite is None
    assert read_status("", "", BOTH).suite is None


def test_suites_without_integrity_are_not_offered() -> None:
    assert not any(name.endswith("-none") for name in all_tunnels()["libreswan"].suites)
