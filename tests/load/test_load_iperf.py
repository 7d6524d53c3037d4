from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fake_traffic_node import FakeCompleted, FakeNodeError, FakeProcess, FakeTrafficNode
from load_workloads import UDP

from tunnelbench.load.base import Endpoint, LoadError
from tunnelbench.load.iperf import DRIVER, Span, client_arguments, parse, server_arguments
from tunnelbench.study.model import Socket
from tunnelbench.study.quantity import SendingRate

REPORTS = Path(__file__).parent / "reports"
"""Reports of iperf 2.1.8: 0.2 s of warm-up, 1 s of window, 0.1 s of cool-down."""

ONE_SECOND = replace(UDP, warm_up_s=0.2, measure_s=1.0, cool_down_s=0.1)
MAXIMUM = replace(ONE_SECOND, payload_bytes=64, rate=SendingRate(None))
TCP = replace(ONE_SECOND, transport="tcp", rate=None, payload_bytes=16_384, direction="reverse")

LISTENING = FakeCompleted(stdout=b"udp UNCONN 0 0 10.0.0.2:5201 0.0.0.0:*\n")


def report(name: str) -> FakeCompleted:
    return FakeCompleted(stdout=(REPORTS / f"iperf_{name}.csv").read_bytes())


def test_the_intervals_in_the_window_are_added_up() -> None:
    measurement = parse(report("udp_client"), report("udp_server"), ONE_SECOND)
    assert set(measurement.metrics) == DRIVER.measures
    assert measurement.metrics["throughput"] == pytest.approx(8.0)
    assert measurement.metrics["offered"] == pytest.approx(8.0)
    assert measurement.metrics["packets_per_second"] == pytest.approx(1_000)
    assert measurement.metrics["loss"] == 0
    assert 0 < measurement.metrics["jitter_last"] < 0.1
    assert measurement.series["throughput"] == pytest.approx([8.0] * 13, abs=0.2)


def test_loss_is_that_of_the_window_alone() -> None:
    measurement = parse(report("udp_max_client"), report("udp_max_server"), MAXIMUM)
    # The ten lines of the window, added up by hand.
    lost, total = 34_423, 175_676
    assert measurement.metrics["loss"] == lost / total
    assert measurement.metrics["packets_per_second"] == total - lost
    assert measurement.metrics["throughput"] == pytest.approx((total - lost) * 64 * 8 / 1e6)
    assert measurement.metrics["offered"] > measurement.metrics["throughput"]


def test_what_iperf_2_0_says_among_the_numbers_is_left_out() -> None:
    sent = FakeCompleted(stdout=report("udp_client").stdout + b"[  3] Sent 1304 datagrams\n")
    assert parse(sent, report("udp_server"), ONE_SECOND).metrics["offered"] == pytest.approx(8.0)


def test_tcp_in_reverse_is_counted_at_the_client() -> None:
    measurement = parse(report("tcp_reverse_client"), report("tcp_reverse_server"), TCP)
    assert measurement.metrics == {"throughput": pytest.approx(2_680.2432)}
    assert parse(report("tcp_reverse_server"), report("tcp_reverse_client"), TCP) != measurement


def test_late_datagrams_are_no_negative_loss_and_count_as_reordered() -> None:
    """An interval into which more late datagrams fall than are lost in it has a negative count."""
    line = "20261120111406,10.1.0.10,45744,10.2.0.10,5201,1,0.0-0.1,100000,8000000,0.4,-2,98,-2.0,2"
    one = replace(ONE_SECOND, warm_up_s=0, measure_s=0.1, cool_down_s=0)
    served = FakeCompleted(stdout=f"{line}\n{line}\n".encode())
    metrics = parse(served, served, one).metrics
    assert metrics["loss"] == 0
    assert metrics["reordering"] == 0.02
    assert metrics["throughput"] == pytest.approx(8.0)


@pytest.mark.parametrize(
    ("asked", "served", "message"),
    [
        (
            FakeCompleted(stderr=b"tcp connect failed: Connection refused\n"),
            FakeCompleted(),
            "nothing .*: tcp connect failed: Connection refused$",
        ),
        (FakeCompleted(), FakeCompleted(), "nothing .* gave no reason"),
        (report("udp_client"), FakeCompleted(stdout=b"Segmentation fault\n"), "no interval: Segmentation"),
        (
            report("udp_client"),
            FakeCompleted(stdout=b"2026,a,1,b,2,1,0.2-0.3,120,9599,9.8,-1048,-944,100.000,0\n"),
            "lost count: .* -1048 of -944",
        ),
    ],
)
def test_a_failed_run_has_no_result(asked: FakeCompleted, served: FakeCompleted, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        parse(asked, served, ONE_SECOND)


def test_the_commands_ask_for_what_the_workload_says() -> None:
    workload = replace(UDP, server=Endpoint("10.0.0.2", 6000), connect=Endpoint("127.0.0.1", 7000))
    common = "-i 0.1 -y C"
    server, client = (" ".join(arguments(workload)) for arguments in (server_arguments, client_arguments))
    assert server == f"iperf --server -B 10.0.0.2 -p 6000 --udp -l 1000 {common}"
    assert client == f"iperf --client 127.0.0.1 -p 7000 -l 1000 -t 2.8 --udp -b 8000000 {common}"
    assert "-b 100g" in " ".join(client_arguments(MAXIMUM))
    assert "--reverse" in client_arguments(TCP)
    assert not {"--udp", "-l"} & set(server_arguments(TCP))
    assert "-V" in client_arguments(replace(UDP, ip="ipv6"))
    assert "-V" in server_arguments(replace(UDP, ip="ipv6"))


def test_sockets_are_set_as_the_workload_says() -> None:
    asked = Socket(dscp=46, buffer=65_536, mss=1000, no_delay=True)
    client = " ".join(client_arguments(replace(TCP, congestion_control="reno", socket=asked)))
    assert client.endswith(" -Z reno -w 65536 -S 184 -M 1000 -N")
    assert " ".join(client_arguments(replace(UDP, socket=asked))).endswith(" -w 65536 -S 184")


def test_the_window_is_in_tenths_of_a_second() -> None:
    span = Span.of(replace(UDP, warm_up_s=0.3, measure_s=0.75, cool_down_s=0.0))
    assert (span.warm_up, span.measured, span.total) == (3, 8, 11)
    assert span.window_s == 0.8


async def test_the_client_starts_when_the_server_listens_and_the_server_is_ended() -> None:
    client = FakeTrafficNode(answers={"iperf": report("udp_client")})
    server = FakeTrafficNode(answers={"ss": LISTENING}, process=FakeProcess(completed=report("udp_server")))
    windows: list[tuple[float, float]] = []
    measurement = await DRIVER.measure(
        client, server, ONE_SECOND, lambda opens_in, lasts: windows.append((opens_in, lasts))
    )
    assert measurement.metrics["throughput"] == pytest.approx(8.0)
    assert windows == [pytest.approx((0.2, 1.0))]
    assert server.process.stopped
    assert [command[0] for command in server.commands] == ["iperf", "ss"]


async def test_a_client_that_fails_leaves_no_server() -> None:
    class Gone(FakeTrafficNode):
        async def run(self, *arguments: str, timeout: float, check: bool = True) -> FakeCompleted:
            raise FakeNodeError("the client is gone")

    server = FakeTrafficNode(answers={"ss": LISTENING})
    with pytest.raises(FakeNodeError):
        await DRIVER.measure(Gone(), server, ONE_SECOND, lambda _opens_in, _lasts: None)
    assert server.process.stopped


def test_datagrams_that_confuse_iperf_are_not_sent() -> None:
    assert DRIVER.refusal(replace(UDP, payload_bytes=12)) == (
        "iperf 2 can't send datagrams of less than 16 bytes"
    )
