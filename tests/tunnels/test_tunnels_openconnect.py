"""What openconnect and ocserv said in real labs, and which suite that means."""

from __future__ import annotations

import pytest

from tunnelbench.lab.topology import Family
from tunnelbench.overhead.model import path_mtu
from tunnelbench.tunnels.base import ReadBack
from tunnelbench.tunnels.openconnect import TUNNEL
from tunnelbench.tunnels.openconnect_read_back import read_log, read_sessions, suite_of

CLIENT = """\
POST https://gw2/
Connected to HTTPS on gw2 with ciphersuite (TLS1.3)-(ECDHE-SECP256R1)-(ECDSA-SECP256R1-SHA256)-(AES-128-GCM)
Set-Cookie: webvpn=<elided>; Secure; HttpOnly
Got CONNECT response: HTTP/1.1 200 CONNECTED
X-DTLS-App-ID: 8a23be8de360705289dd3f93d8da68bcdea590b3f3e04e03ab3b3487a5aa876a
X-DTLS-CipherSuite: PSK-NEGOTIATE
X-CSTP-MTU: 1434
X-DTLS-Content-Encoding: oc-lz4
X-CSTP-Content-Encoding: oc-lz4
CSTP connected. DPD 60, Keepalive 3600
Established DTLS connection (using GnuTLS). Ciphersuite (DTLS1.2)-(PSK)-(AES-128-CBC)-(SHA1).
DTLS connection compression using LZ4.
"""
WITHOUT_DTLS = CLIENT.replace("Established DTLS", "No DTLS").replace("X-CSTP-Content-Encoding: oc-lz4\n", "")
SERVER = """\
[
  {
    "ID":  67,
    "Username":  "gw1",
    "State":  "connected",
    "TLS ciphersuite":  "(TLS1.2)-(ECDHE-SECP256R1)-(ECDSA-SHA256)-(AES-128-CBC)-(SHA1)",
    "DTLS cipher":  "(DTLS1.2)-(PSK)-(AES-128-CBC)-(SHA1)",
    "CSTP compression":  "oc-lz4"
  }
]
"""
SERVER_LOG = """\
ocserv[18]: worker[gw1]: 192.168.0.1 selected DTLS compression method oc-lz4
ocserv[18]: worker[gw1]: 192.168.0.1 selected CSTP compression method oc-lz4
"""
OVER_TLS = SERVER.replace('    "DTLS cipher":  "(DTLS1.2)-(PSK)-(AES-128-CBC)-(SHA1)",\n', "")


def test_the_client_says_what_packets_go_over() -> None:
    read = read_log(CLIENT)
    assert (read.suite, read.facts) == ("aes128-sha1", {"carrier": "dtls", "compression": "lz4"})
    assert "App-ID" not in read.text
    over_tls = read_log(WITHOUT_DTLS)
    assert (over_tls.suite, over_tls.facts) == ("aes128-gcm", {"carrier": "tls", "compression": "none"})
    assert read_log(CLIENT + WITHOUT_DTLS).facts["carrier"] == "tls"


def test_the_server_says_the_same() -> None:
    read = read_sessions(SERVER, SERVER_LOG)
    assert (read.suite, read.facts) == ("aes128-sha1", {"carrier": "dtls", "compression": "lz4"})
    assert read_sessions(SERVER, "").facts["compression"] == "none"
    assert read_sessions(OVER_TLS, "").facts["carrier"] == "tls"


@pytest.mark.parametrize("said", ["", "[]", "[1]", "no users"])
def test_without_a_session_there_is_no_suite(said: str) -> None:
    assert read_sessions(said, SERVER_LOG).suite is None
    assert read_log("") == ReadBack(None, "")


def test_a_name_that_was_cut_is_what_alone_it_can_be() -> None:
    tls13 = "(TLS1.3)-(ECDHE-SECP256R1)-(ECDSA-SECP256R1-SHA256)-(AES-128-GC"
    assert suite_of(tls13) == "aes128-gcm"
    assert suite_of(tls13.replace("128-GC", "128-CC")) == "aes128-ccm"
    assert suite_of("(TLS1.2)-(ECDHE-SECP256R1)-(ECDSA-SHA256)-(AES-128-CBC)-(SHA256") == "aes128-sha256"
    assert suite_of(tls13.removesuffix("128-GC")) is None
    assert suite_of("(DTLS1.2)-(PSK)-(AES-128-CBC)-(SHA512)") is None


@pytest.mark.parametrize(
    ("suite", "carrier", "outer", "mtu"),
    [
        ("aes128-gcm", "dtls", Family.IPV4, 1434),
        ("chacha20-poly1305", "dtls", Family.IPV4, 1442),
        ("aes128-sha1", "dtls", Family.IPV4, 1406),
        ("aes256-sha384", "dtls", Family.IPV4, 1378),
        ("3des-sha1", "dtls", Family.IPV4, 1422),
        ("null-sha1", "dtls", Family.IPV4, 1438),
        ("aes256-ccm", "dtls", Family.IPV6, 1402),
        ("chacha20-poly1305", "dtls", Family.IPV6, 1410),
        ("aes128-sha1", "dtls", Family.IPV6, 1378),
        ("camellia128-sha256", "dtls", Family.IPV6, 1362),
        ("aes256-sha384", "dtls", Family.IPV6, 1346),
        ("3des-sha1", "dtls", Family.IPV6, 1394),
        ("null-sha1", "dtls", Family.IPV6, 1406),
        ("aes128-gcm", "tls", Family.IPV4, 1472),
        ("3des-sha1", "tls", Family.IPV6, 1452),
    ],
)
def test_the_device_has_the_mtu_that_openconnect_gave_it(
    suite: str, carrier: str, outer: Family, mtu: int
) -> None:
    variant = TUNNEL.variant(suite, {"carrier": carrier}, outer)
    assert path_mtu(TUNNEL.encapsulation(variant), Family.IPV4, 1500) == mtu
