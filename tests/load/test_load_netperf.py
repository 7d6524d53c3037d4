from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_traffic_node import FakeCompleted, FakeTrafficNode
from load_workloads import UDP

from tunnelbench.load.base import Endpoint, LoadError, Pattern, Workload
from tunnelbench.load.netperf import DRIVER, client_arguments, parse, server_arguments
from tunnelbench.study.model import Socket
from tunnelbench.study.quantity import SendingRate
from tunnelbench.study.vocabulary import Transport

REPORTS = Path(__file__).parent / "reports"
"""Output of netperf 2.7.1 as in Debian 13."""

MAXIMUM = replace(UDP, rate=SendingRate(None), measure_s=1.2)
TCP = replace(MAXIMUM, transport="tcp", payload_bytes=16_384, direction="reverse")


def report(name: str) -> FakeCompleted:
    return FakeCompleted(stdout=(REPORTS / f"netperf_{name}.txt").read_bytes())


def test_udp_is_counted_at_both_ends() -> None:
    measurement = parse(report("udp"), MAXIMUM)
    assert set(measurement.metrics) < DRIVER.measures
    assert measurement.metrics == pytest.approx(
        {
            "throughput": 953.49,
            "offered": 1_408.13,
            "loss": 1 - 119_292 / 176_172,
            "packets_per_second": 119_292,
        }
    )


def test_tcp_has_throughput_alone() -> None:
    assert parse(report("tcp_reverse"), TCP).metrics == {"throughput": 2_182.89}


@pytest.mark.parametrize(
    ("completed", "message"),
    [
        (FakeCompleted(255, stderr=b"establish_control could not\n"), "with 255 .*establish_control could"),
        (FakeCompleted(0, stdout=b"THROUGHPUT=5.00\n"), "without all its results"),
        (FakeCompleted(0, report("udp").stdout.replace(b"953.49", b"0.00")), "received nothing"),
    ],
)
def test_a_failed_run_has_no_result(completed: FakeCompleted, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        parse(completed, MAXIMUM)


def test_the_commands_ask_for_what_the_workload_says() -> None:
    workload = replace(MAXIMUM, server=Endpoint("10.0.0.2", 6000))
    assert " ".join(server_arguments(workload)) == "netserver -D -4 -L 10.0.0.2 -p 12865"
    client = " ".join(client_arguments(workload))
    assert client.startswith("netperf -H 10.0.0.2 -4 -p 12865 -l 2 -P 0 -t omni -f m -- ")
    assert " -T udp -d send -m 1000 -P ,6000 -R 1 -k THROUGHPUT," in client
    assert " -T tcp -d recv -m ,16384 " in " ".join(client_arguments(TCP))
    assert "-6" in client_arguments(replace(workload, ip="ipv6"))


def test_sockets_are_set_at_both_ends() -> None:
    options = {"socket": Socket(buffer=65_536, no_delay=True), "congestion_control": "reno"}
    client = " ".join(client_arguments(replace(TCP, **options)))  # pyright: ignore[reportArgumentType]
    assert " -s 65536 -S 65536 -D L,R -K reno,reno " in client


async def test_udp_in_reverse_has_the_ends_change_places() -> None:
    workload = replace(MAXIMUM, direction="reverse")
    client = FakeTrafficNode(answers={"ss": FakeCompleted(stdout=b"LISTEN")})
    server = FakeTrafficNode(answers={"netperf": report("udp")})
    await DRIVER.measure(client, server, workload, lambda _opens_in, _lasts: None)
    assert client.commands[0] == ("netserver", "-D", "-4", "-L", "10.0.0.1", "-p", "12865")
    assert [command[:3] for command in server.commands] == [("netperf", "-H", "10.0.0.1")]
    assert "send" in server.commands[0]
    assert client.process.stopped


@pytest.mark.parametrize(
    ("workload", "message"),
    [
        (replace(TCP, connect=Endpoint("127.0.0.1", 7000)), "forwards the single port 7000"),
    ],
)
async def test_what_it_cannot_do_is_refused_before_it_starts(workload: Workload, message: str) -> None:
    node = FakeTrafficNode()
    with pytest.raises(LoadError, match=message):
        await DRIVER.measure(node, node, workload, lambda _opens_in, _lasts: None)
    assert node.commands == []


@pytest.mark.parametrize(
    ("transport", "pattern", "test"),
    [
        ("tcp", "request-response", "TCP_RR"),
        ("tcp", "connect-request-response", "TCP_CRR"),
        ("udp", "request-response", "UDP_RR"),
    ],
)
def test_transactions_have_a_rate_and_round_trips(transport: Transport, pattern: Pattern, test: str) -> None:
    workload = replace(
        MAXIMUM, transport=transport, pattern=pattern, payload_bytes=64, response_bytes=100, rate=None
    )
    assert DRIVER.refusal(workload) is None
    command = " ".join(client_arguments(workload))
    assert f" -t {test} -j -- -r 64,100 -P ,0 -R 1 -k TRANSACTION_RATE,P50_LATENCY," in command
    metrics = parse(report(test.lower()), workload).metrics
    assert set(metrics) < DRIVER.measures
    assert metrics["transactions_per_second"] > 10_000
    assert 0 < metrics["round_trip_p50"] <= metrics["round_trip_p99"] < metrics["round_trip_max"]


def test_round_trips_are_in_milliseconds() -> None:
    workload = replace(MAXIMUM, transport="tcp", pattern="request-response", rate=None)
    assert parse(report("tcp_rr"), workload).metrics == pytest.approx(
        {
            "transactions_per_second": 65_741.531,
            "round_trip_p50": 0.007,
            "round_trip_p90": 0.008,
            "round_trip_p99": 0.021,
            "round_trip_max": 13.391,
        }
    )


def test_a_run_without_transactions_has_no_result() -> None:
    workload = replace(MAXIMUM, transport="tcp", pattern="request-response", rate=None)
    stdout = report("tcp_rr").stdout.replace(b"RATE=65741.531", b"RATE=0.00")
    with pytest.raises(LoadError, match="no transaction"):
        parse(FakeCompleted(stdout=stdout), workload)
