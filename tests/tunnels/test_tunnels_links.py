"""What ip-link(8) said of links in real labs, and what they put around packets."""

from __future__ import annotations

import pytest

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Tunnel, Variant
from tunnelbench.tunnels.kernel_link import read_link

GRE = """\
4: tunnel0@NONE: <POINTOPOINT,NOARP,UP,LOWER_UP> mtu 1476 qdisc noqueue state UNKNOWN mode DEFAULT
    link/gre 192.168.0.1 peer 192.168.0.2 promiscuity 0  allmulti 0 minmtu 0 maxmtu 0
    gre remote 192.168.0.2 local 192.168.0.1 ttl 64 addrgenmode eui64 numtxqueues 1 numrxqueues 1
"""


def test_a_link_of_another_kind_has_no_suite() -> None:
    assert read_link(GRE, "gre", "none").suite == "none"
    assert read_link(GRE, "ipip", "none").suite is None


@pytest.mark.parametrize(
    ("vpn", "suite", "outer", "names"),
    [
        ("ipip", "none", Family.IPV4, ["IPv4"]),
        ("gre", "none", Family.IPV4, ["IPv4", "GRE"]),
        ("gre", "none", Family.IPV6, ["IPv6", "Tunnel encapsulation limit", "GRE"]),
        ("gre-over-ipsec", "aes128-sha1", Family.IPV4, ["IPv4", "ESP", "GRE"]),
        ("vxlan", "none", Family.IPV6, ["IPv6", "UDP", "VXLAN"]),
        ("macsec", "aes128-gcm", Family.IPV4, ["MACsec"]),
    ],
)
def test_layers_are_those_of_the_formats(vpn: str, suite: str, outer: Family, names: list[str]) -> None:
    tunnel = all_tunnels()[vpn]
    assert layer_names(tunnel, tunnel.variant(suite, outer=outer)) == names


def test_gre_in_tunnel_mode_has_one_more_ip_header() -> None:
    tunnel = all_tunnels()["gre-over-ipsec"]
    variant = tunnel.variant("aes128-sha1", {"mode": "tunnel"})
    assert layer_names(tunnel, variant) == ["IPv4", "ESP", "IPv4", "GRE"]


def layer_names(tunnel: Tunnel, variant: Variant) -> list[str]:
    encapsulation = tunnel.encapsulation(variant)
    assert encapsulation is not None
    return [layer.name for layer in encapsulation.layers]


@pytest.mark.parametrize("vpn", ["ip6gre", "ip6tnl"])
def test_what_is_made_for_ipv6_between_the_gateways_needs_not_be_asked_for_it(vpn: str) -> None:
    assert all_tunnels()[vpn].variant("none").outer is Family.IPV6
