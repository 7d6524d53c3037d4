"""What the names in a study mean."""

from __future__ import annotations

import pytest

from tunnelbench.errors import UserError
from tunnelbench.study.catalogue import Catalogue, Vpn
from tunnelbench.study.nearest import nearest


@pytest.mark.parametrize(
    ("pattern", "tunnels"),
    [
        ("open", [("open", "none")]),
        ("open/none", [("open", "none")]),
        ("wireguard-go", [("wireguard-go", "chacha20-poly1305")]),
        ("openvpn/aes-256-gcm", [("openvpn", "aes-256-gcm")]),
        ("openvpn/*gcm", [("openvpn", "aes-256-gcm")]),
        ("ssh-vpn/aes???-*", [("ssh-vpn", f"aes{bits}-cbc-sha1") for bits in (128, 192, 256)]),
    ],
)
def test_patterns(catalogue: Catalogue, pattern: str, tunnels: list[tuple[str, str]]) -> None:
    assert list(catalogue.tunnels(pattern)) == tunnels


def test_a_star_means_every_suite(catalogue: Catalogue) -> None:
    assert [suite for _, suite in catalogue.tunnels("ipsec-manual/*")] == list(
        catalogue.vpns["ipsec-manual"].suites
    )


@pytest.mark.parametrize(
    ("pattern", "message", "advice"),
    [
        ("openvnp/*", "unknown VPN 'openvnp'", "Did you mean 'openvpn'?"),
        ("OpenVPN/*", "unknown VPN 'OpenVPN'", "Did you mean 'openvpn'?"),
        ("", "unknown VPN ''", "Valid VPNs: open, ipip"),
        ("ssh-vpn/aes512-cbc-sha1", "ssh-vpn has no suite 'aes512-cbc-sha1'", "Did you mean 'aes"),
        ("ssh-vpn/", "ssh-vpn has no suite ''", "Valid suites of ssh-vpn: aes128-cbc-sha1"),
        ("ssh-vpn/blowfish*", "ssh-vpn has no suite 'blowfish*'", "Valid suites of ssh-vpn"),
        ("ssh-vpn", "'ssh-vpn' has several suites", "ssh-vpn/* for all"),
    ],
)
def test_unknown_names(catalogue: Catalogue, pattern: str, message: str, advice: str) -> None:
    with pytest.raises(UserError) as error:
        catalogue.tunnels(pattern)
    assert message in error.value.message
    assert advice in (error.value.advice or "")


def test_an_unknown_load(catalogue: Catalogue) -> None:
    assert catalogue.load("iperf3").name == "iperf3"
    with pytest.raises(UserError, match=r"unknown load 'iperf'\n.*'iperf3'"):
        catalogue.load("iperf")


def test_nothing_is_near_to_nonsense(catalogue: Catalogue) -> None:
    assert nearest("zzzzzz", catalogue.vpns) is None
    assert nearest("x", ()) is None


def test_a_vpn_without_suites_is_refused() -> None:
    with pytest.raises(ValueError, match="no suite"):
        Vpn("open", "Plain IP", (), frozenset(), encrypted=False)
