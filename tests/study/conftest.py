"""A catalogue with VPNs of every kind."""

from __future__ import annotations

import pytest

from tunnelbench.study.catalogue import Catalogue, Load, Vpn
from tunnelbench.study.model import Socket
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.vocabulary import BUILT_IN_PROFILES, InternetProtocol, Profile, Transport


def tcp_alone(_: Treatment) -> frozenset[tuple[Transport, InternetProtocol]]:
    return frozenset({("tcp", "ipv4"), ("tcp", "ipv6")})


def no_tap_over_tcp(treatment: Treatment, _topology: str) -> str | None:
    return "no tap over tcp" if treatment.options == "carrier=tcp device=tap" else None


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
        Vpn("open", "Plain IP", ("none",), encrypted=False),
        Vpn("ipip", "IPIP", ("none",), encrypted=False),
        Vpn("gre", "GRE", ("none",), encrypted=False),
        Vpn("ipsec-manual", "IPsec with manual keys", manual, encrypted=True),
        Vpn(
            "openvpn",
            "OpenVPN",
            openvpn,
            encrypted=True,
            options={"device": ("tun", "tap"), "carrier": ("udp", "tcp")},
            objection=no_tap_over_tcp,
        ),
        Vpn("ssh-port-forwarding", "SSH port forwarding", ssh, encrypted=True, carries=tcp_alone),
        Vpn("ssh-vpn", "SSH with a virtual interface", ssh, encrypted=True),
        Vpn("wireguard-go", "WireGuard (wireguard-go)", ("chacha20-poly1305",), encrypted=True),
    )
    loads = (
        Load("engine", frozenset({"content", "sending"}), lambda _point, _socket: None, keeps_time=True),
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
        {"l2f": "nobody speaks it"},
    )


def _refused_by_iperf3(point: Point, socket: Socket) -> str | None:
    if point.transport == "icmp" or point.profile != "constant":
        return f"iperf3 can't send {point.transport} in the profile {point.profile}"
    return "iperf3 can't set socket.ttl" if socket.ttl else None


def _refused_by_ping(point: Point, _: Socket) -> str | None:
    return None if point.transport == "icmp" else f"ping can't send {point.transport}"
