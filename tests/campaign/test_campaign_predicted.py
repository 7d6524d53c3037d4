"""What is predicted of a trial's overhead, and when a measured one is doubted."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tunnelbench.campaign.predicted import METRIC, with_prediction
from tunnelbench.store.model import TrialRecord
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import parse_sending_rate
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.vocabulary import Transport

OPEN = Treatment(vpn="open", suite="none", gateway_os="bookworm", host_os="bookworm", mtu=1500)


def point(transport: Transport, payload_bytes: int, **levels: object) -> Point:
    rate = None if transport == "tcp" else parse_sending_rate("30 Mbit/s")
    made = Point(
        transport=transport,
        ip="ipv4",
        payload_bytes=payload_bytes,
        rate=rate,
        direction="forward",
        load="engine",
    )
    return made.model_copy(update=levels)


def trial(of: Point, overhead: float, **metrics: float) -> TrialRecord:
    lossless = {"loss": 0.0} if of.transport == "udp" else {"retransmits": 0.0}
    measured = {"wire_overhead": overhead, "throughput": 30.0, **lossless, **metrics}
    return TrialRecord(0, of, datetime.now(UTC), 5.0, metrics=measured)


def kinds(of: TrialRecord) -> list[str]:
    return [warning.kind for warning in of.warnings]


def test_a_datagram_has_the_overhead_of_its_size() -> None:
    known = with_prediction(trial(point("udp", 1400), 1442 / 1400), OPEN)
    assert known.metrics[METRIC] == pytest.approx(1442 / 1400)
    assert kinds(known) == []


def test_tcp_has_that_of_full_segments() -> None:
    known = with_prediction(trial(point("tcp", 131_072), 1.046), OPEN)
    assert known.metrics[METRIC] == pytest.approx(1514 / 1448)
    assert kinds(known) == []


@pytest.mark.parametrize("transport", ["udp", "tcp"])
def test_what_formats_do_not_explain_is_doubted(transport: Transport) -> None:
    known = with_prediction(trial(point(transport, 1400), 1.08), OPEN)
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
    known = with_prediction(measured, OPEN)
    assert METRIC in known.metrics
    assert kinds(known) == []


@pytest.mark.parametrize(
    "unpredictable",
    [point("icmp", 56), point("udp", 1400, direction="both"), point("udp", 1400, profile="voip-g711")],
)
def test_nothing_is_predicted_of_traffic_of_many_sizes(unpredictable: Point) -> None:
    assert METRIC not in with_prediction(trial(unpredictable, 3.0), OPEN).metrics
