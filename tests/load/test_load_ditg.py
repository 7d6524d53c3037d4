from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_traffic_node import FakeCompleted, FakeProcess, FakeTrafficNode
from load_workloads import UDP

from tunnelbench.load.base import Endpoint, LoadError, Workload
from tunnelbench.load.ditg import DRIVER, parse, receiver_arguments, sender_arguments
from tunnelbench.study.quantity import SendingRate

REPORTS = Path(__file__).parent / "reports"
"""Output of ITGDec 2.8.1 (r1023)."""

MAXIMUM = replace(UDP, payload_bytes=64, rate=SendingRate(None))
TCP = replace(UDP, transport="tcp", rate=None, payload_bytes=16_384, direction="reverse")

LISTENING = FakeCompleted(stdout=b"LISTEN 0 100 *:9000 *:*\n")
STARTED = FakeCompleted(stdout=b"Started sending packets of flow ID: 1\nFinished sending packets\n")


def report(name: str) -> FakeCompleted:
    return FakeCompleted(stdout=(REPORTS / f"ditg_{name}.txt").read_bytes())


def test_the_summary_of_a_lossy_flow() -> None:
    measurement = parse(report("udp_max"), MAXIMUM)
    assert set(measurement.metrics) == DRIVER.measures
    assert measurement.metrics == pytest.approx(
        {
            "throughput": 110.144312,
            "offered": (214_750 + 59_819) * 64 * 8 / 0.998254 / 1e6,
            "loss": 59_819 / (214_750 + 59_819),
            "jitter": 0.004,
            "latency_max": 5.295,
            "packets_per_second": 215_125.609,
        },
        rel=1e-6,
    )
    assert measurement.warnings == []


def test_a_rate_that_was_not_reached_is_told() -> None:
    measurement = parse(report("udp"), UDP)
    assert measurement.metrics["loss"] == 0
    assert measurement.metrics["offered"] == pytest.approx(6.666413)
    assert [warning.kind for warning in measurement.warnings] == ["rate-not-reached"]
    assert parse(report("udp"), replace(UDP, rate=SendingRate(6_700_000))).warnings == []


def test_tcp_has_throughput_alone() -> None:
    assert parse(report("tcp_reverse"), TCP).metrics == {"throughput": pytest.approx(2_061.58, rel=1e-4)}


@pytest.mark.parametrize(
    ("completed", "message"),
    [
        (FakeCompleted(1, stderr=b"cannot open log file\n"), "no Total time: cannot open log file"),
        (
            FakeCompleted(0, report("udp").stdout.replace(b"=           833", b"=             0")),
            "received nothing",
        ),
    ],
)
def test_a_failed_run_has_no_result(completed: FakeCompleted, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        parse(completed, UDP)


def test_the_commands_ask_for_what_the_workload_says() -> None:
    assert " ".join(receiver_arguments(UDP, "/tmp/a.log")) == "ITGRecv -a 10.0.0.2 -l /tmp/a.log"
    assert " ".join(sender_arguments(UDP, 20_001)) == (
        "ITGSend -a 10.0.0.2 -rp 20001 -T UDP -C 1000.000000 -c 1000 -t 2000"
    )
    reverse = " ".join(sender_arguments(TCP, 20_001))
    assert reverse == "ITGSend -a 10.0.0.1 -rp 20001 -T TCP -C 10000000.000000 -c 16384 -t 2000"


async def test_the_sender_is_the_end_that_the_direction_names() -> None:
    sends = FakeTrafficNode(answers={"ITGSend": STARTED})
    receives = FakeTrafficNode(answers={"ss": LISTENING, "ITGDec": report("udp")})
    await DRIVER.measure(sends, receives, UDP, lambda _opens_in, _lasts: None)
    assert [command[0] for command in sends.commands] == ["ITGSend"]
    assert [command[0] for command in receives.commands] == ["ITGRecv", "ss", "ITGDec", "rm"]
    assert receives.commands[0][-1] == receives.commands[2][1] == receives.commands[3][-1]
    assert receives.process.stopped

    sends = FakeTrafficNode(answers={"ITGSend": STARTED})
    receives = FakeTrafficNode(answers={"ss": LISTENING, "ITGDec": report("tcp_reverse")})
    await DRIVER.measure(receives, sends, TCP, lambda _opens_in, _lasts: None)
    assert [command[0] for command in sends.commands] == ["ITGSend"]


async def test_a_sender_that_could_not_start_is_told_though_it_ends_well() -> None:
    """What ITGSend prints where ITGRecv can't listen; its exit status is 0."""
    failed = FakeCompleted(0, b"Error on bind to receiver side\nError at Receiver side\nFinished sending\n")
    receives = FakeTrafficNode(answers={"ss": LISTENING}, process=FakeProcess())
    with pytest.raises(LoadError, match="Error on bind to receiver side"):
        await DRIVER.measure(
            FakeTrafficNode(answers={"ITGSend": failed}), receives, UDP, lambda _opens_in, _lasts: None
        )
    assert receives.process.stopped


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
