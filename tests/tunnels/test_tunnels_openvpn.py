"""What OpenVPN said in real labs, and which of its variants there can't be."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tunnelbench.tunnels.base import Place
from tunnelbench.tunnels.openvpn import TUNNEL
from tunnelbench.tunnels.openvpn_daemon import rekey_refusal
from tunnelbench.tunnels.openvpn_read_back import handshakes, read_link, read_log

TLS_2_6 = """\
1795276448.034727 3c000004 LZ4v2 compression initializing
1795276448.035087 1 TUN/TAP device tap0 opened
1795276448.038952 1 UDPv6 link remote: [AF_INET6]fd00::1:1194
1795276448.061761 14000003 TLS: Initial packet from [AF_INET6]fd00::1:1194, sid=854e0cb2 dcf2073b
1795276448.070167 14000002 Control Channel: TLSv1.3, cipher TLSv1.3 TLS_AES_256_GCM_SHA384, peer \
certificate: 256 bits ECprime256v1, signature: ecdsa-with-SHA256, peer temporary key: 253 bits X25519
1795276448.070261 1 [gw1] Peer Connection Initiated with [AF_INET6]fd00::1:1194
1795276449.949723 41000004 Outgoing dynamic tls-crypt: Cipher 'AES-256-CTR' initialized with 256 bit key
1795276449.949816 41000004 Outgoing dynamic tls-crypt: Using 256 bit message hash 'SHA256' for HMAC \
authentication
1795276449.949981 41000004 Outgoing Data Channel: Cipher 'AES-128-CBC' initialized with 128 bit key
1795276449.950034 41000004 Outgoing Data Channel: Using 160 bit message hash 'SHA1' for HMAC authentication
1795276449.950085 41000004 Incoming Data Channel: Cipher 'AES-128-CBC' initialized with 128 bit key
1795276449.950131 41000004 Incoming Data Channel: Using 160 bit message hash 'SHA1' for HMAC authentication
1795276449.950182 1 Initialization Sequence Completed
"""
TLS_2_5 = """\
2026-11-21 16:02:04 Unrecognized option or missing or extra parameter(s) in tunnel.conf:6: providers (2.5.1)
1795276928.673903 1 TCPv6_SERVER link remote: [AF_INET6]fd00::1:55254
1795276928.674031 14000003 TLS: Initial packet from [AF_INET6]fd00::1:55254, sid=f50315d2 539f2b9b
1795276928.676917 14000002 Outgoing Data Channel: Cipher 'BF-CBC' initialized with 128 bit key
1795276928.676922 40 WARNING: INSECURE cipher (BF-CBC) with block size less than 128 bit (64 bit).
1795276928.676924 14000002 Outgoing Data Channel: Using 128 bit message hash 'MD5' for HMAC authentication
1795276928.676956 14000002 Incoming Data Channel: Cipher 'BF-CBC' initialized with 128 bit key
1795276928.676960 14000002 Incoming Data Channel: Using 128 bit message hash 'MD5' for HMAC authentication
1795276928.718103 14000002 Control Channel: TLSv1.3, cipher TLSv1.3 TLS_AES_256_GCM_SHA384, 256 bit EC, \
curve: prime256v1
1795276928.718135 1 [gw1] Peer Connection Initiated with [AF_INET6]fd00::1:55254
"""
STATIC = """\
1795276926.225094 14000002 Outgoing Static Key Encryption: Cipher 'AES-128-CBC' initialized with 128 bit key
1795276926.225118 14000002 Outgoing Static Key Encryption: Using 160 bit message hash 'SHA1' for HMAC \
authentication
1795276926.225127 14000002 Incoming Static Key Encryption: Cipher 'AES-128-CBC' initialized with 128 bit key
1795276926.225131 14000002 Incoming Static Key Encryption: Using 160 bit message hash 'SHA1' for HMAC \
authentication
1795276926.225138 3c000004 LZO compression initializing
1795276926.230170 1 UDPv4 link remote: [AF_INET]192.168.0.1:1194
1795276926.257951 1 Peer Connection Initiated with [AF_INET]192.168.0.1:1194
"""
OFFLOADED = """\
1795276414.188345 1 UDPv4 link remote: [AF_INET]192.168.0.2:1194
1795276415.969936 1 Initialization Sequence Completed
1795276415.969938 14000002 Data Channel: cipher 'AES-128-GCM', peer-id: 0
"""
SERVER = """\
1795278255.992316 1 TCPv4_SERVER link remote: [AF_UNSPEC]
1795278256.126149 41000004 client1/192.168.0.11:53406 Outgoing Data Channel: Cipher 'BF-CBC' initialized \
with 128 bit key
1795278256.126159 41000004 client1/192.168.0.11:53406 Outgoing Data Channel: Using 128 bit message hash \
'MD5' for HMAC authentication
1795278256.126200 41000004 client1/192.168.0.11:53406 Incoming Data Channel: Cipher 'BF-CBC' initialized \
with 128 bit key
1795278256.126206 41000004 client1/192.168.0.11:53406 Incoming Data Channel: Using 128 bit message hash \
'MD5' for HMAC authentication
1795278256.131149 41000004 client11/192.168.0.21:53408 Outgoing Data Channel: Cipher 'AES-128-GCM' \
initialized with 128 bit key
1795278256.131200 41000004 client11/192.168.0.21:53408 Incoming Data Channel: Cipher 'AES-128-GCM' \
initialized with 128 bit key
"""
HANDSHAKES = """\
1795278256.043418 14000003 192.168.0.12:48386 TLS: Initial packet from [AF_INET]192.168.0.12:48386, sid=a2
1795278256.059325 14000003 192.168.0.11:53406 TLS: Initial packet from [AF_INET]192.168.0.11:53406, sid=23
1795278256.118129 1 192.168.0.12:48386 [client2] Peer Connection Initiated with [AF_INET]192.168.0.12:48386
1795278256.125882 1 192.168.0.11:53406 [client1] Peer Connection Initiated with [AF_INET]192.168.0.11:53406
"""
TAP = '[{"ifname":"tap0","mtu":1500,"linkinfo":{"info_kind":"tun","info_data":{"type":"tap","pi":false}}}]'


def test_facts_of_both_channels_are_read_from_the_log() -> None:
    found = read_log(TLS_2_6)
    assert found.suite == "aes-128-cbc-sha1"
    assert found.facts == {
        "keying": "tls",
        "carrier": "udp",
        "compression": "lz4",
        "TLS version": "TLSv1.3",
        "TLS cipher": "TLS_AES_256_GCM_SHA384",
        "key agreement": "253 bits X25519",
    }
    assert [line.split(":")[0] for line in found.text.splitlines()] == [
        *["Outgoing Data Channel"] * 2,
        *["Incoming Data Channel"] * 2,
    ]


def test_older_releases_do_not_say_how_keys_were_agreed_on() -> None:
    found = read_log(TLS_2_5)
    assert found.suite == "bf-cbc-md5"
    assert found.facts["carrier"] == "tcp"
    assert found.facts["TLS version"] == "TLSv1.3"
    assert "key agreement" not in found.facts


def test_a_static_key_is_told_from_keys_of_tls() -> None:
    found = read_log(STATIC)
    assert found.suite == "aes-128-cbc-sha1"
    assert found.facts == {"keying": "static", "carrier": "udp", "compression": "lzo"}
    assert read_log(STATIC + TLS_2_6).facts == {}


def test_where_the_kernel_has_the_keys_the_summary_is_read() -> None:
    found = read_log(OFFLOADED)
    assert found.suite == "aes-128-gcm"
    assert found.text == "Data Channel: cipher 'AES-128-GCM', peer-id: 0"
    assert found.facts["keying"] == "tls"


def test_a_server_speaks_of_each_client() -> None:
    assert read_log(SERVER, "client1/").suite == "bf-cbc-md5"
    assert read_log(SERVER, "client11/").suite == "aes-128-gcm"
    assert read_log(SERVER, "client2/").suite is None
    assert read_log(SERVER, "client1/").facts["carrier"] == "tcp"


def test_a_handshake_lasts_from_the_first_packet_until_the_peer_is_known() -> None:
    assert handshakes(TLS_2_6) == [pytest.approx(0.0085, abs=1e-6)]
    assert handshakes(TLS_2_6 + TLS_2_5) == [
        pytest.approx(0.0085, abs=1e-6),
        pytest.approx(0.044104, abs=1e-6),
    ]
    assert handshakes(STATIC) == []


def test_handshakes_with_several_clients_are_told_apart() -> None:
    assert handshakes(HANDSHAKES) == [
        pytest.approx(0.074711, abs=1e-6),
        pytest.approx(0.066557, abs=1e-6),
    ]


def test_the_device_is_what_the_kernel_says() -> None:
    assert read_link(TAP) == {"device": "tap", "offload": "no"}
    assert read_link('[{"linkinfo":{"info_kind":"ovpn-dco"}}]') == {"device": "tun", "offload": "yes"}


@pytest.mark.parametrize(
    ("suite", "levels", "place", "said"),
    [
        ("aes-128-gcm", {"keying": "static"}, Place("bookworm", "site-to-site"), "AEADs with TLS keys only"),
        ("bf-cbc-md5", {"keying": "static"}, Place(None, "remote-access", 3), "joins two ends"),
        (
            "bf-cbc-md5",
            {"keying": "static", "renegotiation": "by-volume"},
            Place(None, "site-to-site"),
            "renegotiate",
        ),
        ("aes-128-cbc-sha1", {"offload": "yes"}, Place(None, "site-to-site"), "AES-GCM and ChaCha20"),
        ("aes-128-gcm", {"offload": "yes", "device": "tap"}, Place(None, "site-to-site"), "IP packets only"),
        ("aes-128-gcm", {"offload": "yes"}, Place("bullseye", "site-to-site"), "trixie's 2.6"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(
    suite: str, levels: Mapping[str, str], place: Place, said: str
) -> None:
    assert said in (TUNNEL.objection(TUNNEL.variant(suite, levels), place) or "")


def test_the_defaults_can_be_everywhere() -> None:
    for topology in TUNNEL.topologies:
        for suite in TUNNEL.suites:
            assert TUNNEL.objection(TUNNEL.variant(suite), Place("bullseye", topology)) is None


@pytest.mark.parametrize(
    ("suite", "levels", "reason"),
    [
        ("aes-256-gcm", {}, "takes no order"),
        ("aes-256-gcm", {"renegotiation": "by-volume"}, "megabytes of payload"),
        ("bf-cbc-sha1", {}, "megabytes of payload"),
        ("bf-cbc-sha1", {"keying": "static"}, "never renewed"),
        ("aes-256-gcm", {"offload": "yes"}, "takes no order"),
    ],
)
def test_it_says_why_new_keys_are_not_measured(suite: str, levels: Mapping[str, str], reason: str) -> None:
    assert reason in rekey_refusal(TUNNEL.variant(suite, levels))
