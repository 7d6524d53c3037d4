"""What SoftEther said in real labs, and which suite that means."""

from __future__ import annotations

import pytest

from tunnelbench.tunnels.base import Place
from tunnelbench.tunnels.softether import TUNNEL, read_status

SAID = """\
VPN Client>AccountStatusGet bench
AccountStatusGet command - Get Current VPN Connection Setting Status
Item                                      |Value
------------------------------------------+-------------------------------------------------------------
VPN Connection Setting Name               |bench
Session Status                            |Connection Completed (Session Established)
Port Number                               |TCP Port 443
Encryption                                |Enabled (Algorithm: ECDHE-RSA-AES128-GCM-SHA256)
Use of Compression                        |No (No Compression)
Physical Underlay Protocol                |Standard TCP/IP (IPv4)
UDP Acceleration is Supported             |No
UDP Acceleration is Active                |No
Session Name                              |SID-BENCH-2
Session Key (160 bit)                     |8FDF46B43CCF13349A4AF2A9DE82E47411F2F86E
The command completed successfully.
"""


def test_the_suite_is_that_of_the_session_and_no_key_comes_along() -> None:
    read = read_status(SAID)
    assert read.suite == "aes128-gcm"
    assert read.facts == {"udp-acceleration": "no", "compression": "none"}
    assert "8FDF" not in read.text


def test_acceleration_and_compression_are_told() -> None:
    said = SAID.replace("Active                |No", "Active                |Yes")
    assert read_status(said).facts["udp-acceleration"] == "yes"
    said = SAID.replace("|No (No Compression)", "|Yes (40.00 %)")
    assert read_status(said).facts["compression"] == "deflate"


@pytest.mark.parametrize(
    ("encryption", "suite"),
    [
        ("Disabled (No Encryption)", "null"),
        ("Enabled (Algorithm: ECDHE-RSA-AES128-SHA)", "aes128-sha1"),
        ("Enabled (Algorithm: TLS_AES_256_GCM_SHA384)", None),
        ("", None),
    ],
)
def test_other_encryption(encryption: str, suite: str | None) -> None:
    said = SAID.replace("Enabled (Algorithm: ECDHE-RSA-AES128-GCM-SHA256)", encryption)
    assert read_status(said).suite == suite
    assert read_status("").suite is None


def test_what_cannot_be_is_refused() -> None:
    site = Place("bookworm", "site-to-site")
    accelerated = {"udp-acceleration": "yes"}
    assert TUNNEL.refusal(TUNNEL.variant("chacha20-poly1305", accelerated), site) is None
    assert "ChaCha20-Poly1305" in (TUNNEL.refusal(TUNNEL.variant("aes128-sha1", accelerated), site) or "")
    missing = TUNNEL.refusal(TUNNEL.variant("aes128-sha1"), Place("trixie", "site-to-site"))
    assert "bullseye and bookworm" in (missing or "")
