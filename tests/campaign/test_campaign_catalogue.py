"""What studies may name."""

from __future__ import annotations

import pytest

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.lab.image import RELEASES
from tunnelbench.study.cells import expand
from tunnelbench.study.model import About, Factors, Study
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels import all_tunnels


def test_plain_ip_is_the_first_vpn() -> None:
    assert next(iter(catalogue().vpns)) == "open"


def test_what_forwards_single_ports_carries_no_datagrams() -> None:
    carries = catalogue().vpns["ssh-port-forwarding"].carries
    treatment = Treatment(
        vpn="ssh-port-forwarding", suite="aes128-gcm", gateway_os="bookworm", host_os="bookworm", mtu=1500
    )
    assert {transport for transport, _ in carries(treatment)} == {"tcp"}


@pytest.mark.parametrize("vpn", catalogue().vpns)
def test_every_vpn_comes_up_somewhere_with_defaults_alone(vpn: str) -> None:
    tunnel = all_tunnels()[vpn]
    for topology in tunnel.topologies:
        objections = {
            (release, suite): catalogue()
            .vpns[vpn]
            .objection(
                Treatment(
                    vpn=vpn,
                    suite=suite,
                    outer_ip=tunnel.default_outer.value,
                    gateway_os=release,
                    host_os=release,
                    mtu=1500,
                ),
                topology,
            )
            for release in RELEASES
            for suite in tunnel.suites
        }
        assert None in objections.values(), objections


def test_several_clients_need_remote_access() -> None:
    treatment = Treatment(
        vpn="open", suite="none", clients=2, gateway_os="bookworm", host_os="bookworm", mtu=1500
    )
    objection = catalogue().vpns["open"].objection(treatment, "site-to-site")
    assert objection == "2 clients need the topology remote-access, not site-to-site"


def test_a_proxy_needs_a_load_that_speaks_its_language() -> None:
    factors = Factors(tunnel=("ssh-socks/aes128-gcm",), load=("engine", "iperf3"))
    study = Study(study=About(id="one", title="One", question="Which?"), factors=factors)
    skipped = {(cell.treatment.vpn, cell.point.load): cell.skipped for cell in expand(study, catalogue())}
    assert skipped.pop(("ssh-socks", "iperf3")) == (
        "SSH SOCKS proxy is a proxy, and iperf3 doesn't speak SOCKS 5; the engine does"
    )
    assert set(skipped.values()) == {None}
