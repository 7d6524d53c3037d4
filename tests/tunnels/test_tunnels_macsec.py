"""What ip-macsec(8) said in a real lab, and which suite that means."""

from __future__ import annotations

import pytest

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import Place
from tunnelbench.tunnels.macsec import TUNNEL, read_interface

SHOWN = """\
6: tunnel0: protect on validate strict sc off sa off encrypt on send_sci on end_station off scb off replay off
    cipher suite: GCM-AES-256, using ICV length 16
    TXSC: 020000c6c1010001 on SA 0
        0: PN 1, state on, key 00000000000000000000000000000000
    RXSC: 0200000000010001, state on
        0: PN 1, state on, key 01000000000000000000000000000000
    offload: off
"""


def test_the_suite_is_what_the_kernel_says() -> None:
    assert read_interface(SHOWN).suite == "aes256-gcm"
    assert read_interface(SHOWN.replace("GCM-AES-256", "GCM-AES-128")).suite == "aes128-gcm"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("encrypt on", "encrypt off"),
        ("GCM-AES-256", "GCM-AES-XPN-256"),
        ("PN 1, state on, key 01", "PN 1, state off, key 01"),
        (SHOWN, ""),
    ],
)
def test_what_does_not_encrypt_in_both_directions_has_no_suite(first: str, second: str) -> None:
    assert first in SHOWN
    assert read_interface(SHOWN.replace(first, second)).suite is None


def test_there_is_no_ip_version_to_choose() -> None:
    place = Place("bookworm", "site-to-site")
    assert TUNNEL.objection(TUNNEL.variant("aes128-gcm"), place) is None
    objection = TUNNEL.objection(TUNNEL.variant("aes128-gcm", outer=Family.IPV6), place)
    assert "no IP version between the gateways to choose" in (objection or "")
