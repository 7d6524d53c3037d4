"""A catalogue with VPNs of every kind."""

from __future__ import annotations

from typing import get_args

import pytest

from tunnelbench.study.catalogue import Catalogue, Load, Vpn
from tunnelbench.study.model import Socket
from tunnelbench.study.points import Point
from tunnelbench.study.vocabulary import BUILT_IN_PROFILES, InternetProtocol, Profile, Transport

EVERYTHING: frozenset[tuple[Transport, InternetProtocol]] = frozenset(
    (transport, ip) for transport in get_args(Transport) for ip in get_args(InternetProtocol)
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
    loads = (
        Load("engine", frozenset({"content", "sending"}), lambda _point, _socket: None),
        Load("iperf3", frozenset(), _refused_by_iperf3),
        Load("ping", frozenset(), _refused_by_ping),
    )
    profiles = (
        *BUILT_IN_PROFILES,
        Profile("imix", "Internet mix", frozenset({"udp"}), sets_payload=True),
        Profile("voip-g711", "Voice", frozenset({"udp"}), sets_payload=True, sets_rate=True),
        Profile("telnet", "Telnet", frozenset({"tcp"}), sets_payload=True, sets_rate=True),
    )
    return Catalogue(
        {vpn.name: vpn for vpn in vpns},
        {load.name: load for load in loads},
        {profile.name: profile for profile in profiles},
    )


def _refused_by_iperf3(point: Point, socket: Socket) -> str | None:
    if point.transport == "icmp" or point.profile != "constant":
        return f"iperf3 can't send {point.transport} in the profile {point.profile}"
    return "iperf3 can't set socket.ttl" if socket.ttl else None


def _refused_by_ping(point: Point, _: Socket) -> str | None:
    return None if point.transport == "icmp" else f"ping can't send {point.transport}"
