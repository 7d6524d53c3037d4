"""A catalogue with VPNs of every kind."""

from __future__ import annotations

import pytest

from tunnelbench.study.catalogue import Catalogue, InternetProtocol, Transport, Vpn

EVERYTHING: frozenset[tuple[Transport, InternetProtocol]] = frozenset(
    {("tcp", "ipv4"), ("tcp", "ipv6"), ("udp", "ipv4"), ("udp", "ipv6")}
)
TCP_ONLY: frozenset[tuple[Transport, InternetProtocol]] = frozenset({("tcp", "ipv4"), ("tcp", "ipv6")})


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    ssh = tuple(f"{cipher}-cbc-sha1" for cipher in ("aes128", "aes192", "aes256", "3des"))
    openvpn_ciphers = ("bf-cbc", "aes-128-cbc", "aes-192-cbc", "aes-256-cbc", "des-ede3-cbc")
    openvpn = (*(f"{cipher}-sha1" for cipher in openvpn_ciphers), "aes-256-gcm")
    manual = (
        *(f"{cipher}-sha1" for cipher in ("blowfish", "aes128", "aes192", "aes256", "3des")),
        "aes128-gcm",
    )
    vpns = (
        Vpn("open", "Plain IP", ("none",), EVERYTHING, encrypted=False),
        Vpn("ipip", "IPIP", ("none",), EVERYTHING, encrypted=False),
        Vpn("gre", "GRE", ("none",), EVERYTHING, encrypted=False),
        Vpn("ipsec-manual", "IPsec with manual keys", manual, EVERYTHING, encrypted=True),
        Vpn("openvpn", "OpenVPN", openvpn, EVERYTHING, encrypted=True),
        Vpn("ssh-port-forwarding", "SSH port forwarding", ssh, TCP_ONLY, encrypted=True),
        Vpn("ssh-vpn", "SSH with a virtual interface", ssh, EVERYTHING, encrypted=True),
        Vpn("wireguard-go", "WireGuard (wireguard-go)", ("chacha20-poly1305",), EVERYTHING, encrypted=True),
    )
    return Catalogue({vpn.name: vpn for vpn in vpns}, ("engine", "iperf3"))
