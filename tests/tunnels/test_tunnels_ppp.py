"""What pppd and xl2tpd said in real labs, and what that means."""

from __future__ import annotations

from typing import cast

import pytest

from tunnelbench.lab.connection import Connection
from tunnelbench.lab.messages import Output
from tunnelbench.lab.program import Program
from tunnelbench.tunnels import l2tp, pppd, sstp, sstp_server, xl2tpd
from tunnelbench.tunnels.base import Place

LCP = """\
using channel 1
Using interface ppp0
Connect: ppp0 <-->
rcvd [LCP ConfReq id=0x1 <mru 1400> <asyncmap 0x0> <auth {method}> <magic 0xf04b2ef8>]
sent [LCP ConfAck id=0x1 <mru 1400> <asyncmap 0x0> <auth {method}> <magic 0xf04b2ef8>]
"""
UP = """\
local  LL address fe80::f118:dfd6:3c1c:649b
remote LL address fe80::b961:577c:21da:0a2c
local  IP address 10.255.0.1
remote IP address 10.255.0.2
"""
MPPE = """\
sent [CCP ConfReq id=0x1 <mppe +H -M +S -L -D -C>]
rcvd [CCP ConfAck id=0x1 <mppe +H -M +S -L -D -C>]
MPPE 128-bit stateless compression enabled
"""
DEFLATE = "Deflate (15) compression enabled\n"


@pytest.mark.parametrize(
    ("log", "suite", "authentication", "compression"),
    [
        (LCP.format(method="chap MS-v2") + MPPE + UP, "mppe128", "ms-chap-v2", "none"),
        (
            LCP.format(method="chap MS-v2") + MPPE.replace("128-bit", "40-bit") + UP,
            *("mppe40", "ms-chap-v2", "none"),
        ),
        (LCP.format(method="chap MD5") + UP, "none", "chap", "none"),
        (LCP.format(method="pap") + DEFLATE + UP, "none", "pap", "deflate"),
        (
            LCP.format(method="pap") + DEFLATE + "Lost compression sync: disabling compression\n" + UP,
            *("none", "pap", "none"),
        ),
    ],
)
def test_the_log_of_pppd_tells_suite_authentication_and_compression(
    log: str, suite: str, authentication: str, compression: str
) -> None:
    found = pppd.read_log(log)
    assert found.suite == suite
    assert found.facts == {"authentication": authentication, "compression": compression}


def test_what_is_not_up_has_no_suite() -> None:
    assert pppd.read_log(LCP.format(method="pap")).suite is None


KEYS = """\
CHAP authentication succeeded
The mppe send key (20): 016c0d864abab1e30017dedb506cf649f475a353
The mppe recv key (20): c7e89fbcfef316378f16825a45a137148817176e
sent [IPCP ConfReq id=0x1 <addr 0.0.0.0>]
"""
BLOTTED = """\
CHAP authentication succeeded
The mppe send key (20): (160 bits)
The mppe recv key (20): (160 bits)
sent [IPCP ConfReq id=0x1 <addr 0.0.0.0>]
"""


def test_keys_in_the_log_of_pppd_are_not_told() -> None:
    assert pppd.read_log(KEYS).text == BLOTTED.strip()


async def test_keys_in_what_a_program_prints_are_not_among_its_last_lines() -> None:
    program = Program(cast(Connection, None), 1, ("pppd",))
    program.take(Output(1, error_stream=False, data=KEYS.encode()))
    assert program.log_tail() == BLOTTED.strip()


def test_unknown_encryption_is_no_suite() -> None:
    assert pppd.read_log(MPPE.replace("128-bit", "56-bit") + UP).suite is None


@pytest.mark.parametrize(
    ("said", "plane"),
    [
        ("xl2tpd[751]: Using l2tp kernel support.\n", "kernel"),
        ("xl2tpd[741]: Not looking for kernel support.\n", "user-space"),
    ],
)
def test_xl2tpd_says_what_moves_packets(said: str, plane: str) -> None:
    assert xl2tpd.read_logs(said, UP).facts["data-plane"] == plane


@pytest.mark.parametrize(
    ("suite", "options", "reason"),
    [
        ("mppe128", {"authentication": "chap"}, "needs authentication=ms-chap-v2"),
        ("mppe40", {"compression": "deflate"}, "either MPPE or compression"),
        ("none", {"authentication": "pap", "compression": "deflate"}, None),
        ("mppe128", {}, None),
    ],
)
def test_mppe_needs_ms_chap_and_excludes_compression(
    suite: str, options: dict[str, str], reason: str | None
) -> None:
    found = l2tp.TUNNEL.refusal(l2tp.TUNNEL.variant(suite, options), Place("bookworm", "site-to-site"))
    assert found is None if reason is None else reason in (found or "")


SSTPD = """\
2026-11-21 16:29:57,752 INFO: Cert SHA-1: d13f92f676aac4c2d5f58fdc8070a1c94410a667
2026-11-21 16:29:58,232 INFO: Listening on 192.168.0.2:443...
TLSv1.2 cipher ECDHE-ECDSA-AES128-SHA
2026-11-21 16:30:17,076 INFO: [1F10A0B2/192.168.0.1:38458] Connection established.
"""


def test_the_server_of_sstp_says_what_tls_uses() -> None:
    found = sstp_server.read_ciphers(SSTPD, pppd.read_log(LCP.format(method="chap MS-v2") + UP))
    assert found.suite == "aes128-sha1"
    assert found.facts == {"authentication": "ms-chap-v2", "compression": "none", "TLS version": "1.2"}


def test_all_clients_of_sstp_must_have_the_same_cipher() -> None:
    up = pppd.read_log(LCP.format(method="chap MS-v2") + UP)
    assert sstp_server.read_ciphers(SSTPD + SSTPD, up, clients=2).suite == "aes128-sha1"
    assert sstp_server.read_ciphers(SSTPD, up, clients=2).suite is None
    assert sstp_server.read_ciphers(SSTPD + SSTPD.replace("AES128", "AES256"), up, clients=2).suite is None


def test_sstp_without_ppp_or_with_an_unknown_cipher_has_no_suite() -> None:
    up = pppd.read_log(LCP.format(method="chap MS-v2") + UP)
    assert sstp_server.read_ciphers(SSTPD, pppd.read_log("")).suite is None
    assert sstp_server.read_ciphers(SSTPD.replace("AES128-SHA", "NULL-SHA"), up).suite is None
    assert sstp_server.read_ciphers("", up).suite is None


@pytest.mark.parametrize(("release", "lacks"), [("bullseye", "sstp-client"), ("bookworm", "Python 3.12")])
def test_sstp_says_which_release_has_it(release: str, lacks: str) -> None:
    found = sstp.TUNNEL.refusal(sstp.TUNNEL.variant("aes128-gcm"), Place(release, "site-to-site"))
    assert found is not None
    assert lacks in found
    assert "trixie has" in found
