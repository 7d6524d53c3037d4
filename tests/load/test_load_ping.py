from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_traffic_node import FakeCompleted, FakeTrafficNode
from hypothesis import given
from hypothesis import strategies as st
from load_workloads import UDP

from tunnelbench.load.base import LoadError
from tunnelbench.load.ping import DRIVER, arguments, parse
from tunnelbench.study.model import Socket
from tunnelbench.study.quantity import MAXIMUM, SendingRate

REPORTS = Path(__file__).parent / "reports"
"""Output of ping from iputils 20221126."""

PACED = replace(UDP, transport="icmp", payload_bytes=56, rate=SendingRate(4_480))
"""An echo request every 100 ms."""
ADAPTIVE = replace(PACED, rate=MAXIMUM, measure_s=1.2, ip="ipv6")


def report(name: str) -> FakeCompleted:
    return FakeCompleted(stdout=(REPORTS / f"ping_{name}.txt").read_bytes())


def test_round_trips_are_those_of_the_lines() -> None:
    measurement = parse(report("ipv4"))
    assert measurement.metrics == pytest.approx(
        {
            "loss": 0.0,
            "duplicates": 0.0,
            "round_trip_p50": 0.027,
            "round_trip_p90": 0.030,
            "round_trip_p99": 0.031,
            "round_trip_p999": 0.031,
            "round_trip_max": 0.031,
        }
    )
    assert set(measurement.metrics) == DRIVER.measures


def test_loss_and_duplicates_are_those_of_the_summary() -> None:
    assert parse(report("loss")).metrics["loss"] == pytest.approx(11 / 50)
    duplicated = parse(report("duplicates")).metrics
    assert (duplicated["loss"], duplicated["duplicates"]) == (0.0, pytest.approx(4 / 5))
    assert duplicated["round_trip_max"] == 0.095, "the first reply to each request counts"


@pytest.mark.parametrize(
    ("completed", "message"),
    [
        (replace(report("unreachable"), status=1), "none of 5 echo requests was answered"),
        (
            FakeCompleted(2, stderr=b"ping: connect: Network is unreachable\n"),
            "with 2 .*Network is unreachable",
        ),
        (FakeCompleted(0, stdout=report("ipv4").stdout[:400]), "without its summary"),
    ],
)
def test_a_failed_run_has_no_result(completed: FakeCompleted, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        parse(completed)


@given(st.text() | st.binary().map(lambda data: data.decode(errors="replace")))
def test_whatever_is_printed_is_understood_or_refused(text: str) -> None:
    with pytest.raises(LoadError, match="summary"):
        parse(FakeCompleted(stdout=text.encode(errors="replace")))


def test_the_commands_ask_for_what_the_workload_says() -> None:
    assert " ".join(arguments(PACED)) == "ping -D -n -4 -s 56 -W 1 -i 0.100 -c 20 10.0.0.2"
    assert " ".join(arguments(ADAPTIVE)) == "ping -D -n -6 -s 56 -W 1 -A -w 2 10.0.0.2"
    socket = Socket(dscp=46, ttl=3, dont_fragment=True, buffer=100_000)
    assert " -Q 184 -t 3 -M do -S 100000 " in " ".join(arguments(replace(PACED, socket=socket)))


async def test_the_window_is_the_whole_flow() -> None:
    windows: list[tuple[float, float]] = []
    for workload in (PACED, ADAPTIVE):
        client, server = FakeTrafficNode(completed=report("ipv4")), FakeTrafficNode()
        await DRIVER.measure(
            client, server, workload, lambda opens_in, lasts: windows.append((opens_in, lasts))
        )
        assert [command[0] for command in client.commands] == ["ping"]
        assert server.commands == []
    assert windows == [(0.0, 2.0), (0.0, 2)]


def test_what_it_cannot_do_is_refused() -> None:
    assert DRIVER.refusal(PACED) is None
    assert DRIVER.refusal(ADAPTIVE) is None
    for workload, reason in [
        (UDP, "send UDP"),
        (replace(PACED, payload_bytes=8), "less than 16 bytes"),
        (replace(PACED, direction="reverse"), "reverse"),
        (replace(PACED, rate=SendingRate(448_000 * 2)), "every 0.5 ms"),
        (replace(PACED, rate=SendingRate(448_000 * 2 // 3)), "every 1.5 ms"),
    ]:
        refusal = DRIVER.refusal(workload)
        assert refusal is not None
        assert reason in refusal
