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
    assert [(choice.vpn, choice.suite) for choice in catalogue.tunnels(pattern)] == tunnels


@pytest.mark.parametrize(
    ("assignments", "options"),
    [
        ("", [""]),
        ("carrier=udp", [""]),
        ("carrier=tcp", ["carrier=tcp"]),
        ("device=tap carrier=tcp", ["carrier=tcp device=tap"]),
        ("carrier=udp,tcp", ["", "carrier=tcp"]),
        ("carrier=* device=*", ["", "device=tap", "carrier=tcp", "carrier=tcp device=tap"]),
    ],
)
def test_options(catalogue: Catalogue, assignments: str, options: list[str]) -> None:
    """The default goes without saying."""
    choices = catalogue.tunnels(f"openvpn/aes-256-gcm {assignments}")
    assert [choice.options for choice in choices] == options


def test_a_star_means_every_suite(catalogue: Catalogue) -> None:
    assert [choice.suite for choice in catalogue.tunnels("ipsec-manual/*")] == list(
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
        ("openvpn/* carier=tcp", "openvpn has no option 'carier'", "Did you mean 'carrier'?"),
        ("openvpn/* carrier=dcp", "openvpn has no carrier 'dcp'", "Did you mean 'udp'?"),
        ("openvpn/* carrier", "openvpn has no carrier ''", "Valid levels of carrier: udp, tcp"),
        ("ipip mode=x", "ipip has no option 'mode'", "ipip has no options."),
        ("l2f", "there is no l2f to be had: nobody speaks it", ""),
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
        Vpn("open", "Plain IP", (), encrypted=False)
