"""What is predicted of a trial's overhead, and when a measured one is doubted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from campaign_points import point

from tunnelbench.campaign.predicted import METRIC, with_prediction
from tunnelbench.lab.topology import TOPOLOGIES, Topology
from tunnelbench.store.model import TrialRecord
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.vocabulary import Transport

OPEN = Treatment(vpn="open", suite="none", gateway_os="bookworm", host_os="bookworm", mtu=1500)
IPSEC = OPEN.model_copy(update={"vpn": "ipsec-manual", "suite": "aes128-sha1"})
SITES, HOSTS = TOPOLOGIES["site-to-site"], TOPOLOGIES["host-to-host"]


def trial(of: Point, overhead: float, **metrics: float) -> TrialRecord:
    lossless = {"loss": 0.0} if of.transport == "udp" else {"retransmits": 0.0}
    measured = {"wire_overhead": overhead, "throughput": 30.0, **lossless, **metrics}
    return TrialRecord(0, of, datetime.now(UTC), 5.0, metrics=measured)


def kinds(of: TrialRecord) -> list[str]:
    return [warning.kind for warning in of.warnings]


def test_a_datagram_has_the_overhead_of_its_size() -> None:
    known = with_prediction(trial(point("udp", 1400), 1442 / 1400), OPEN, SITES)
    assert known.metrics[METRIC] == pytest.approx(1442 / 1400)
    assert kinds(known) == []


def test_tcp_has_that_of_full_segments() -> None:
    known = with_prediction(trial(point("tcp", 131_072), 1.046), OPEN, SITES)
    assert known.metrics[METRIC] == pytest.approx(1514 / 1448)
    assert kinds(known) == []


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_what_formats_do_not_explain_is_doubted(transport: Transport) -> None:
    known = with_prediction(trial(point(transport, 1400), 1.08), OPEN, SITES)
    assert kinds(known) == ["unexpected-overhead"]


@pytest.mark.parametrize(
    "measured",
    [
        pytest.param(trial(point("udp", 1400), 1.08, loss=0.01), id="loss"),
        pytest.param(trial(point("tcp", 1400), 1.08, retransmits=3.0), id="sent again"),
        pytest.param(trial(point("udp", 1400), 1.08, throughput=0.1), id="little traffic"),
        pytest.param(trial(point("udp", 3000), 1.2), id="the path's MTU may not be known"),
    ],
)
def test_what_has_another_reason_is_not(measured: TrialRecord) -> None:
    known = with_prediction(measured, OPEN, SITES)
    assert METRIC in known.metrics
    assert kinds(known) == []


@pytest.mark.parametrize(
    "unpredictable",
    [point("icmp", 56), point("udp", 1400, direction="both"), point("udp", 1400, profile="voip-g711")],
)
def test_nothing_is_predicted_of_traffic_of_many_sizes(unpredictable: Point) -> None:
    assert METRIC not in with_prediction(trial(unpredictable, 3.0), OPEN, SITES).metrics


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_nothing_is_predicted_of_what_a_hosts_own_ipsec_cuts_up(direction: str) -> None:
    cut = trial(point("udp", 1460, direction=direction), 1.08)
    assert METRIC not in with_prediction(cut, IPSEC, HOSTS).metrics
    assert kinds(with_prediction(cut, IPSEC, HOSTS)) == []
    assert METRIC in with_prediction(cut, IPSEC, SITES).metrics


@pytest.mark.parametrize(
    ("of", "treatment", "topology"),
    [
        pytest.param(point("udp", 1300), IPSEC, HOSTS, id="fits the tunnel"),
        pytest.param(point("tcp", 131_072), IPSEC, HOSTS, id="TCP"),
        pytest.param(point("udp", 1460, ip="ipv6"), IPSEC, HOSTS, id="IPv6"),
        pytest.param(point("udp", 1460), OPEN.model_copy(update={"vpn": "gre"}), HOSTS, id="not IPsec"),
        pytest.param(point("udp", 1460), IPSEC, SITES, id="gateways"),
    ],
)
def test_all_else_between_hosts_is_predicted(of: Point, treatment: Treatment, topology: Topology) -> None:
    assert METRIC in with_prediction(trial(of, 1.08), treatment, topology).metrics
