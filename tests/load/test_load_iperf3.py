from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from fake_traffic_node import FakeCompleted, FakeNodeError, FakeTrafficNode
from load_workloads import UDP

from tunnelbench.load.base import Endpoint, LoadError
from tunnelbench.load.both_ways import BOTH_WAYS
from tunnelbench.load.iperf3 import DRIVER, client_arguments, parse, server_arguments
from tunnelbench.study.model import Socket
from tunnelbench.study.quantity import SendingRate

REPORTS = Path(__file__).parent / "reports"
"""Reports of iperf3 3.12."""

TCP = replace(UDP, transport="tcp", rate=None, payload_bytes=131_072, direction="reverse")


def report(name: str) -> FakeCompleted:
    return FakeCompleted(stdout=(REPORTS / name).read_bytes())


def sums(sent: dict[str, float], received: dict[str, float]) -> FakeCompleted:
    return FakeCompleted(stdout=json.dumps({"end": {"sum_sent": sent, "sum_received": received}}).encode())


def test_a_udp_report_gives_what_the_receiver_saw() -> None:
    measurement = parse(report("iperf3_udp.json"), UDP)
    assert set(measurement.metrics) == DRIVER.measures - BOTH_WAYS - {"retransmits"}
    assert measurement.metrics["throughput"] == pytest.approx(7.9912, rel=1e-4)
    assert measurement.metrics["packets_per_second"] == pytest.approx(998.9, rel=1e-4)
    assert measurement.metrics["offered"] == pytest.approx(8.0, rel=1e-3)
    assert measurement.metrics["loss"] == 0.0
    assert 0 < measurement.metrics["jitter_last"] < 1


def test_loss_in_reverse_is_as_the_client_counted_it() -> None:
    sent = {"seconds": 3.000402, "bytes": 71_015_680, "bits_per_second": 189_349_773.8}
    received = {
        "seconds": 3.000006,
        "bytes": 27_608_896,
        "bits_per_second": 73_623_575.4,
        "lost_packets": 679_723,
        "packets": 1_111_112,
    }
    workload = replace(UDP, payload_bytes=64, rate=SendingRate(None), direction="reverse")
    assert parse(sums(sent, received), workload).metrics["loss"] == pytest.approx(679_723 / 1_111_112)


def test_a_tcp_report_gives_the_throughput_at_the_receiver() -> None:
    end = json.loads(report("iperf3_tcp_reverse.json").stdout)["end"]
    measurement = parse(report("iperf3_tcp_reverse.json"), TCP)
    assert measurement.metrics == {
        "throughput": end["sum_received"]["bits_per_second"] / 1e6,
        "retransmits": end["sum_sent"]["retransmits"] / end["sum_sent"]["seconds"],
    }
    assert end["sum_received"]["bytes"] != end["sum_sent"]["bytes"]


def test_loss_forward_leaves_the_omitted_seconds_out() -> None:
    """The sums of a real run with `--omit 1`, whose `lost_packets` spans 4 s and not 3."""
    sent = {"seconds": 2.999996, "bytes": 70_766_080, "bits_per_second": 188_709_798.3}
    received = {
        "seconds": 3.00034,
        "bytes": 26_279_744,
        "bits_per_second": 70_071_375.9,
        "lost_packets": 931_607,
    }
    measurement = parse(sums(sent, received), replace(UDP, payload_bytes=64, rate=SendingRate(None)))
    assert measurement.metrics["loss"] == pytest.approx(695_099 / 1_105_720)
    assert measurement.metrics["packets_per_second"] == pytest.approx(136_858, rel=1e-4)


@pytest.mark.parametrize(
    ("completed", "message"),
    [
        (FakeCompleted(stdout=b'{"end": {}, "error": "unable to connect"}'), "iperf3: unable to connect"),
        (FakeCompleted(status=1, stderr=b"iperf3: parameter error\n"), "ended with 1 .*parameter error"),
        (FakeCompleted(status=-9, stdout=b'{"end": {'), "ended with -9"),
        (FakeCompleted(status=1, stdout=b'{"end": {}}'), "reported no sums"),
        (FakeCompleted(stdout=b'{"end": {}}'), "reported no sums"),
        (
            sums(
                {"seconds": 1, "bytes": 9, "bits_per_second": 72},
                {"seconds": 1, "bytes": 0, "bits_per_second": 0},
            ),
            "received nothing",
        ),
    ],
)
def test_a_failed_run_has_no_result(completed: FakeCompleted, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        parse(completed, UDP)


def test_the_commands_ask_for_what_the_workload_says() -> None:
    workload = replace(UDP, server=Endpoint("10.0.0.2", 6000), connect=Endpoint("127.0.0.1", 7000))
    server = " ".join(server_arguments(workload))
    client = " ".join(client_arguments(workload))
    assert server == "iperf3 --server --one-off --forceflush -4 -B 10.0.0.2 -p 6000"
    assert client.startswith("iperf3 --client 127.0.0.1 -p 7000 --json -4 ")
    assert client.endswith(" --omit 1 --time 2 --interval 0 --length 1000 --udp --bitrate 8000000")
    assert "--bitrate 0" in " ".join(client_arguments(replace(UDP, rate=SendingRate(None))))
    assert "--udp" not in client_arguments(TCP)
    assert "--reverse" in client_arguments(TCP)
    assert "-6" in client_arguments(replace(UDP, ip="ipv6"))


def test_both_directions_are_counted_each_at_its_receiver() -> None:
    metrics = parse(report("iperf3_tcp_both.json"), replace(TCP, direction="both")).metrics
    assert metrics["throughput_forward"] == pytest.approx(408.05, rel=1e-4)
    assert metrics["throughput_reverse"] == pytest.approx(1560.69, rel=1e-4)
    assert metrics["throughput"] == metrics["throughput_forward"] + metrics["throughput_reverse"]
    assert metrics["retransmits"] == pytest.approx((40 + 382) / 1.991146)
    udp = parse(report("iperf3_udp_both.json"), replace(UDP, direction="both")).metrics
    assert udp["packets_per_second"] == pytest.approx(1000.7, rel=1e-3)
    assert udp["loss"] == udp["loss_forward"] == udp["loss_reverse"] == 0
    assert udp["jitter_last"] == pytest.approx(0.7308, rel=1e-3)
    assert set(metrics) | set(udp) <= DRIVER.measures


def test_sockets_are_set_as_the_workload_says() -> None:
    asked = Socket(dscp=46, buffer=65_536, mss=1000, no_delay=True)
    tcp = replace(TCP, streams=3, direction="both", congestion_control="reno", socket=asked)
    client = " ".join(client_arguments(tcp))
    assert client.endswith(
        " --bidir --parallel 3 --congestion reno --window 65536 --tos 184 --set-mss 1000 --no-delay"
    )
    assert " ".join(client_arguments(replace(UDP, socket=asked))).endswith(" --window 65536 --tos 184")


async def test_the_client_starts_when_the_server_listens_and_the_server_is_ended() -> None:
    client, server = FakeTrafficNode(completed=report("iperf3_udp.json")), FakeTrafficNode()
    measurement = await DRIVER.measure(client, server, UDP, lambda _opens_in, _lasts: None)
    assert measurement.metrics["throughput"] > 0
    assert server.process.waited_for == ["Server listening"]
    assert server.process.stopped
    assert [command[1] for command in [*server.commands, *client.commands]] == ["--server", "--client"]


async def test_a_server_that_does_not_listen_starts_no_client() -> None:
    client, server = FakeTrafficNode(), FakeTrafficNode()
    server.process.failure = FakeNodeError("no such line")
    with pytest.raises(FakeNodeError):
        await DRIVER.measure(client, server, UDP, lambda _opens_in, _lasts: None)
    assert client.commands == []
    assert server.process.stopped
