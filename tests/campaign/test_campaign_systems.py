"""Which images nodes run, and on which of them a tunnel ends."""

from __future__ import annotations

import pytest

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.campaign.systems import at_tunnel_ends, names_by_node
from tunnelbench.lab.topology import TOPOLOGIES, remote_access
from tunnelbench.study.treatment import Treatment


def treatment_on(gateway_os: str, host_os: str) -> Treatment:
    return Treatment(
        vpn="openvpn",
        suite="aes-128-gcm",
        options="offload=yes",
        gateway_os=gateway_os,
        host_os=host_os,
        mtu=1500,
    )


def test_each_side_runs_its_own_image() -> None:
    assert names_by_node(TOPOLOGIES["site-to-site"], "bullseye+trixie", "trixie+bookworm") == {
        "host1": "trixie",
        "gw1": "bullseye",
        "gw2": "trixie",
        "host2": "bookworm",
    }
    assert names_by_node(TOPOLOGIES["host-to-host"], "bookworm", "bullseye+trixie") == {
        "host1": "bullseye",
        "host2": "trixie",
    }
    assert names_by_node(remote_access(2), "bookworm", "bullseye+trixie") == {
        "client1": "bullseye",
        "client2": "bullseye",
        "switch": "bookworm",
        "gw": "bookworm",
        "host": "trixie",
    }


@pytest.mark.parametrize(
    ("topology", "gateway_os", "host_os", "systems"),
    [
        ("site-to-site", "trixie", "bookworm", ("trixie",)),
        ("site-to-site", "bullseye+trixie", "bookworm", ("trixie", "bullseye")),
        ("host-to-host", "trixie", "bookworm", ("bookworm",)),
        ("host-to-host", "trixie", "bullseye+bookworm", ("bookworm", "bullseye")),
        ("remote-access", "trixie", "bookworm", ("trixie", "bookworm")),
        ("remote-access", "trixie", "bullseye+bookworm", ("trixie", "bullseye")),
    ],
)
def test_tunnels_end_on_gateways_and_clients_are_hosts(
    topology: str, gateway_os: str, host_os: str, systems: tuple[str, ...]
) -> None:
    assert at_tunnel_ends(treatment_on(gateway_os, host_os), topology) == systems


@pytest.mark.parametrize(
    ("gateway_os", "host_os", "topology", "objects"),
    [
        ("trixie", "bullseye", "site-to-site", False),
        ("bullseye", "trixie", "site-to-site", True),
        ("bullseye+trixie", "trixie", "site-to-site", True),
        ("trixie+bullseye", "trixie", "site-to-site", True),
        ("trixie+bookworm", "bullseye", "site-to-site", False),
        ("trixie", "bullseye", "remote-access", True),
        ("trixie", "bookworm+bullseye", "remote-access", False),
        ("bullseye", "trixie", "host-to-host", False),
        ("bullseye", "trixie+bullseye", "host-to-host", True),
    ],
)
def test_what_a_vpn_needs_is_looked_for_where_the_tunnel_ends(
    gateway_os: str, host_os: str, topology: str, objects: bool
) -> None:
    treatment = treatment_on(gateway_os, host_os)
    objection = catalogue().vpns["openvpn"].objection(treatment, topology)
    assert (objection is not None) == objects, objection


def test_one_gateway_runs_one_image() -> None:
    objection = (
        catalogue().vpns["openvpn"].objection(treatment_on("bookworm+trixie", "trixie"), "remote-access")
    )
    assert objection == (
        "the topology remote-access has one gateway: name one image for it, not bookworm+trixie"
    )
