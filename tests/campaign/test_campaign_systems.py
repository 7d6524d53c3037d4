"""Which images a tunnel ends on."""

from __future__ import annotations

import pytest

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.campaign.systems import at_tunnel_ends
from tunnelbench.study.treatment import Treatment


@pytest.mark.parametrize(
    ("topology", "systems"),
    [
        ("site-to-site", ("trixie",)),
        ("host-to-host", ("bookworm",)),
        ("remote-access", ("trixie", "bookworm")),
    ],
)
def test_tunnels_end_on_gateways_and_clients_are_hosts(topology: str, systems: tuple[str, ...]) -> None:
    treatment = Treatment(vpn="open", suite="none", gateway_os="trixie", host_os="bookworm", mtu=1500)
    assert at_tunnel_ends(treatment, topology) == systems


@pytest.mark.parametrize(
    ("gateway_os", "host_os", "topology", "objects"),
    [
        ("trixie", "bullseye", "site-to-site", False),
        ("bullseye", "trixie", "site-to-site", True),
        ("trixie", "bullseye", "remote-access", True),
        ("bullseye", "trixie", "host-to-host", False),
    ],
)
def test_what_a_vpn_needs_is_looked_for_where_the_tunnel_ends(
    gateway_os: str, host_os: str, topology: str, objects: bool
) -> None:
    treatment = Treatment(
        vpn="openvpn",
        suite="aes-128-gcm",
        options="offload=yes",
        gateway_os=gateway_os,
        host_os=host_os,
        mtu=1500,
    )
    objection = catalogue().vpns["openvpn"].objection(treatment, topology)
    assert (objection is not None) == objects, objection
