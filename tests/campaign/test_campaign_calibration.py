"""Which generators are calibrated, and when one is called the bottleneck."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.campaign.calibration import settings, with_doubt
from tunnelbench.store.model import CalibrationRecord, TrialRecord
from tunnelbench.study.cells import Cell, Treatment
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import MAXIMUM, parse_sending_rate
from tunnelbench.study.vocabulary import Transport

OPENVPN = Treatment(vpn="openvpn", suite="aes-128-gcm", gateway_os="bookworm", host_os="bookworm", mtu=1500)


def point(transport: Transport, payload_bytes: int, rate: str = "30 Mbit/s", load: str = "engine") -> Point:
    return Point(
        transport=transport,
        ip="ipv6",
        payload_bytes=payload_bytes,
        rate=None if transport == "tcp" else parse_sending_rate(rate),
        direction="reverse",
        streams=1 if transport == "tcp" else None,
        content="random",
        sending="batched" if transport == "udp" else None,
        load=load,
    )


def trial(of: Point, throughput: float) -> TrialRecord:
    return TrialRecord(0, of, datetime.now(UTC), 5.0, metrics={"throughput": throughput})


def calibrated(of: Point, throughput: float) -> CalibrationRecord:
    return CalibrationRecord(OPENVPN.host_os, OPENVPN.mtu, of, {"throughput": throughput})


def the_one_for(of: Point) -> Point:
    return settings([Cell(treatment=OPENVPN, point=of)])[0][2]


def test_each_generator_is_measured_as_fast_as_it_can_and_at_a_quiet_rate() -> None:
    cells = [
        Cell(treatment=OPENVPN, point=point("tcp", 131_072)),
        Cell(treatment=OPENVPN, point=point("udp", 1400)),
        Cell(treatment=OPENVPN, point=point("udp", 1400, rate="50 Mbit/s")),
        Cell(treatment=OPENVPN, point=point("udp", 1400).model_copy(update={"background": "tcp-both"})),
        Cell(treatment=OPENVPN, point=point("udp", 1400, load="iperf3"), skipped="it can't"),
        Cell(treatment=OPENVPN, point=point("icmp", 56)),
    ]
    wanted = settings(cells)
    assert [(image, mtu) for image, mtu, _ in wanted] == [("bookworm", 1500)] * 3
    assert [(one.transport, str(one.rate), one.direction, one.ip) for _, _, one in wanted] == [
        ("tcp", "None", "forward", "ipv4"),
        ("udp", str(MAXIMUM), "forward", "ipv4"),
        ("udp", "1000 packets/s", "forward", "ipv4"),
    ]


@given(st.sets(st.integers(12, 65_000), min_size=1))
def test_of_many_sizes_a_few_are_measured_and_always_the_extremes(sizes: set[int]) -> None:
    cells = [Cell(treatment=OPENVPN, point=point("udp", size)) for size in sizes]
    measured = [one.payload_bytes for _, _, one in settings(cells) if one.rate == MAXIMUM]
    assert len(measured) == min(len(sizes), 5)
    assert {min(sizes), max(sizes)} <= set(measured) <= sizes


@pytest.mark.parametrize(("throughput", "doubted"), [(905.0, True), (890.0, False)])
def test_a_result_close_to_the_generators_own_carries_a_warning(throughput: float, doubted: bool) -> None:
    of = point("udp", 1400, rate="max")
    judged = with_doubt(trial(of, throughput), OPENVPN, [calibrated(the_one_for(of), 1000.0)])
    assert [warning.kind for warning in judged.warnings] == ["generator-bound"] * doubted


def test_the_nearest_size_that_was_measured_stands_for_the_others() -> None:
    small, large = point("udp", 64, rate="max"), point("udp", 1400, rate="max")
    known = [calibrated(the_one_for(small), 100.0), calibrated(the_one_for(large), 1000.0)]
    of = point("udp", 128, rate="max")
    assert with_doubt(trial(of, 95.0), OPENVPN, known).warnings
    assert not with_doubt(trial(of, 95.0), OPENVPN, known[1:]).warnings


def test_another_kind_of_traffic_says_nothing() -> None:
    of = point("udp", 1400, rate="max")
    other = the_one_for(point("tcp", 1400))
    assert not with_doubt(trial(of, 1000.0), OPENVPN, [calibrated(other, 1000.0)]).warnings
    elsewhere = OPENVPN.model_copy(update={"mtu": 9000})
    assert not with_doubt(trial(of, 1000.0), elsewhere, [calibrated(the_one_for(of), 1000.0)]).warnings
