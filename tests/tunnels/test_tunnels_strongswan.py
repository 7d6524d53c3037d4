"""What strongSwan and the kernel said in real labs, and what that means; what is written for strongSwan."""

from __future__ import annotations

import pytest

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Place
from tunnelbench.tunnels.strongswan_associations import installed, read_associations
from tunnelbench.tunnels.strongswan_configuration import Protection, daemon_settings
from tunnelbench.tunnels.strongswan_read_back import at_kernel, in_use

EXCHANGE = (
    "list-sa event {gateways {uniqueid=1 version=2 state=ESTABLISHED local-host=fd00::1 local-port=500 "
    "local-id=CN=gw1 remote-host=fd00::2 remote-port=500 remote-id=CN=gw2 initiator=yes "
    "initiator-spi=b9ef567def7194e4 responder-spi=5848e19ca54f6ea1 encr-alg=AES_CBC encr-keysize=128 "
    "integ-alg=HMAC_SHA2_256_128 prf-alg=PRF_HMAC_SHA2_256 dh-group=CURVE_25519 established=0 "
    "rekey-time=14075 child-sas {"
)
TRAFFIC = (
    "bytes-in=0 packets-in=0 bytes-out=0 packets-out=0 rekey-time=3496 life-time=3960 install-time=0 "
    "local-ts=[10.1.0.0/24 fd00:1::/64] remote-ts=[10.2.0.0/24 fd00:2::/64]}"
)
AH = EXCHANGE + (
    "net-1 {name=net uniqueid=1 reqid=1 state=INSTALLED mode=TUNNEL protocol=AH spi-in=cf5dd48c "
    f"spi-out=c7367ff5 integ-alg=HMAC_SHA1_96 {TRAFFIC}}}}}}}\nlist-sas reply {{}}\n"
)
COMPRESSED = EXCHANGE + (
    "net-1 {name=net uniqueid=1 reqid=1 state=INSTALLED mode=TUNNEL protocol=ESP spi-in=c6f8d4d1 "
    "spi-out=c95c4710 cpi-in=b724 cpi-out=2550 encr-alg=AES_CBC encr-keysize=128 "
    f"integ-alg=HMAC_SHA2_256_128 {TRAFFIC}}}}}}}\nlist-sas reply {{}}\n"
)
REKEYED = EXCHANGE + (
    "net-1 {name=net uniqueid=1 reqid=1 state=DELETED mode=TUNNEL protocol=ESP encap=yes spi-in=c1 "
    f"spi-out=c2 encr-alg=CHACHA20_POLY1305 {TRAFFIC} "
    "net-2 {name=net uniqueid=2 reqid=1 state=INSTALLED mode=TUNNEL protocol=ESP encap=yes spi-in=c3 "
    f"spi-out=c4 encr-alg=CHACHA20_POLY1305 {TRAFFIC}}}}}}}\nlist-sas reply {{}}\n"
)
COMPRESSED_IN_KERNEL = """\
src 192.168.0.1 dst 192.168.0.2
\tproto esp spi 0xc95c4710 reqid 1 mode transport
\treplay-window 0 
\tauth-trunc hmac(sha256) 0x702c7830349a789712739976414001e41123f9f74c9ed1dc9c945fec42d3d547 128
\tenc cbc(aes) 0x16e4a40495628cbe202d4818b0da80e6
\tsel src 0.0.0.0/0 dst 0.0.0.0/0 
src 192.168.0.1 dst 192.168.0.2
\tproto comp spi 0x00002550 reqid 1 mode tunnel
\treplay-window 0 flag noecn nopmtudisc af-unspec
\tcomp deflate 
src 192.168.0.2 dst 192.168.0.1
\tproto esp spi 0xc6f8d4d1 reqid 1 mode transport
\treplay-window 32 
\tauth-trunc hmac(sha256) 0xa258f563704262674e0ed994ef970e7e72063d96ce8b6906b610b91a013bbd13 128
\tenc cbc(aes) 0x229d34979b9ef25f40d804e2dedc7770
\tsel src 0.0.0.0/0 dst 0.0.0.0/0 
src 192.168.0.2 dst 192.168.0.1
\tproto comp spi 0x0000b724 reqid 1 mode tunnel
\treplay-window 0 flag noecn nopmtudisc af-unspec
\tcomp deflate 
src 192.168.0.1 dst 192.168.0.2
\tproto esp spi 0x00000bad reqid 1 mode transport
\tauth-trunc hmac(md5) 0x702c7830349a78971273997641400123 96
\tenc cbc(des) 0x16e4a40495628cbe
"""  # noqa: W291 -- as ip(8) prints it


@pytest.mark.parametrize(
    ("text", "suite", "facts"),
    [
        (AH, "null-sha1", {"protocol": "ah", "compression": "none", "NAT traversal": "no"}),
        (COMPRESSED, "aes128-sha256", {"protocol": "esp", "compression": "deflate", "NAT traversal": "no"}),
        (REKEYED, "chacha20-poly1305", {"compression": "none", "NAT traversal": "yes"}),
    ],
)
def test_what_charon_says_is_understood(text: str, suite: str, facts: dict[str, str]) -> None:
    read = in_use(text, read_associations(text), expected=1)
    assert read.suite == suite
    in_common = {"IKE version": "ikev2", "DH group": "curve25519", "mode": "tunnel"}
    assert {**read.facts, **facts, **in_common} == read.facts


def test_fewer_associations_than_expected_are_no_suite() -> None:
    assert in_use(AH, read_associations(AH), expected=2).suite is None
    assert in_use("list-sas reply {}\n", [], expected=1).suite is None


def test_the_newest_pair_is_in_use() -> None:
    (child,) = installed(read_associations(REKEYED))
    assert child.indices == {"c3", "c4"}


def test_of_the_kernel_only_charons_own_associations_count_and_keys_stay_there() -> None:
    read = at_kernel(COMPRESSED_IN_KERNEL, read_associations(COMPRESSED))
    assert read.suite == "aes128-sha256"
    assert read.facts["compression"] == "deflate"
    assert "702c7830" not in read.text
    assert at_kernel(COMPRESSED_IN_KERNEL, read_associations(AH)).suite is None


def test_every_suite_has_a_name_of_its_own_at_strongswan() -> None:
    strongswan = all_tunnels()["strongswan"]
    proposals = [getattr(suite, "strongswan") for suite in strongswan.suites.values()]  # noqa: B009
    assert len(set(proposals)) == len(proposals)


def test_settings_are_written_in_sections() -> None:
    lines = daemon_settings(Protection("aes128-sha1", data_plane="user-space")).splitlines()
    assert lines[0] == "charon-systemd {"
    assert "      socket = unix:///run/strongswan/charon.vici" in lines
    assert any(line.startswith("  load = kernel-libipsec kernel-netlink ") for line in lines)


@pytest.mark.parametrize(
    ("suite", "options", "topology", "reason"),
    [
        ("aes128-sha1", {"mode": "transport"}, "site-to-site", "needs the topology host-to-host"),
        ("aes128-sha1", {"protocol": "ah"}, "site-to-site", "AH encrypts nothing"),
        ("null-sha1", {"protocol": "ah", "nat-traversal": "yes"}, "site-to-site", "pass a NAT"),
        ("aes128-sha1", {"data-plane": "user-space"}, "site-to-site", "add nat-traversal=yes"),
        ("chacha20-poly1305", {"version": "ikev1"}, "site-to-site", "IKEv1"),
        ("aes128-sha1", {"mode": "transport", "steering": "vti"}, "host-to-host", "tunnel mode alone"),
    ],
)
def test_what_can_not_be_is_refused_with_the_reason(
    suite: str, options: dict[str, str], topology: str, reason: str
) -> None:
    strongswan = all_tunnels()["strongswan"]
    assert reason in (strongswan.refusal(strongswan.variant(suite, options), Place(None, topology)) or "")
    assert strongswan.refusal(strongswan.variant(suite, {}, Family.IPV6), Place(None, topology)) is None
