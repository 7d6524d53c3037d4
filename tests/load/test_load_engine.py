from __future__ import annotations

import math
from dataclasses import replace

import pytest
from fake_traffic_node import FakeNodeError, FakeTrafficNode
from load_workloads import UDP
from msgspec.structs import replace as changed

from tunnelbench.lab.traffic import (
    Batched,
    BitsPerSecond,
    DelayVariation,
    FlowReport,
    FlowSeries,
    Histogram,
    LossBursts,
    MaximumRate,
    PerPacket,
    Series,
    Tally,
    TcpConnect,
    TcpConnected,
    TcpFlow,
    TcpInformation,
    TcpListen,
    TcpListened,
    TcpReceived,
    TcpReceivedStream,
    TcpSamples,
    TcpSent,
    TcpSentStream,
    UdpReceive,
    UdpReceived,
    UdpSend,
    UdpSent,
    VoiceQuality,
)
from tunnelbench.load.base import Endpoint, LoadError, TrafficNode, Workload
from tunnelbench.load.both_ways import BOTH_WAYS
from tunnelbench.load.engine import DRIVER, udp
from tunnelbench.study.quantity import MAXIMUM

TCP = replace(UDP, transport="tcp", rate=None, payload_bytes=131_072)

DELAY = Histogram(
    unit="ns",
    count=1_990,
    negative=0,
    min=100_000,
    max=9_000_000,
    mean=1.0,
    deviation=0.5,
    p50=1_000_000,
    p90=2_000_000,
    p99=3_000_000,
    p999=4_000_000,
    encoded=b"delays",
)

VARIATION = DelayVariation(
    absolute=changed(DELAY, p50=20_000, p99=80_000, encoded=b"ipdv"),
    negative=900,
    mean=-5.0,
    min=-90_000,
    max=80_000,
)

SENT = UdpSent(
    mode=Batched(64),
    asked_rate=8e6,
    achieved_rate=8e6,
    measured=Tally(2_000, 2_000_000),
    total=Tally(2_750, 2_750_000),
    late=0,
    skipped=0,
    unsent=0,
    send_errors=0,
    departure_error=changed(DELAY, encoded=b"departures"),
    processor=1_000_000,
    clock_step=0,
)

FLOW = FlowReport(
    measured=Tally(1_990, 1_990_000),
    duplicates=199,
    reordered=398,
    reordering_extent=changed(DELAY, unit="packets", max=12),
    late_time_offset=DELAY,
    extent_unknown=0,
    beyond_window=0,
    loss=LossBursts(expected=2_000, lost=10, bursts=4, mean=2.5, longest=4, ratio=2.4875),
    jitter_last=500_000.0,
    jitter_mean=250_000.0,
    delay=DELAY,
    ipdv=VARIATION,
    pdv=changed(DELAY, p50=10_000, p99=50_000, p999=60_000, encoded=b"pdv"),
    arrived=Tally(1_980, 1_980_000),
    series=FlowSeries(
        step=100_000_000,
        bytes=[100_000, 50_000],
        packets=[100, 50],
        lost=[0, 0],
        delay_min=[1, 2],
        delay_mean=[3.0, 4.0],
        delay_max=[5, 6],
        jitter=[None, 1.0],
    ),
    longest_gap=1_000_000,
    total=Tally(2_740, 2_740_000),
)

RECEIVED = UdpReceived(
    timestamps="kernel",
    socket_buffer=4_194_304,
    flow=FLOW,
    foreign=0,
    buffer_drops=0,
    receive_calls=40,
    coalesced=0,
    processor=1_000_000,
    voice=VoiceQuality(r_factor=90.0, mos=4.3),
    log_dropped=None,
    clock_step=0,
)

SEEN = TcpInformation(
    round_trip=2_000_000,
    round_trip_deviation=100_000,
    minimum_round_trip=1_000_000,
    congestion_window=10,
    unacked=5,
    retransmits=9,
    segments=800,
    segment_bytes=1_448,
    pacing_rate=None,
    delivery_rate=4_000_000,
)

SAMPLES = TcpSamples(
    round_trip=[1_000_000, 2_000_000, None],
    round_trip_deviation=[100_000, 100_000, None],
    congestion_window=[10, 20, None],
    unacked=[5, 5, None],
    retransmits=[0, 9, None],
    pacing_rate=[None, None, None],
    delivery_rate=[4_000_000, 4_000_000, None],
)

TCP_SENT = TcpSent(
    measured_bytes=1_100_000,
    total_bytes=1_200_000,
    congestion_control="cubic",
    retransmits=8,
    segments=800,
    minimum_round_trip=1_000_000,
    round_trip=DELAY,
    step=100_000_000,
    streams=[TcpSentStream(measured_bytes=1_100_000, processor=1_000_000, end=SEEN, samples=SAMPLES)],
)

TCP_RECEIVED = TcpReceived(
    measured_bytes=1_000_000,
    total_bytes=1_150_000,
    streams=[TcpReceivedStream(measured_bytes=1_000_000, processor=1_000_000)],
    series=Series(100_000_000, [12_500]),
    longest_gap=0,
)

SENDER, RECEIVER = TcpFlow(sent=TCP_SENT), TcpFlow(received=TCP_RECEIVED)


def nodes(
    sent: UdpSent | Exception = SENT, received: UdpReceived | Exception = RECEIVED
) -> tuple[FakeTrafficNode, FakeTrafficNode]:
    outcomes: dict[type[object], object] = {UdpSent: sent, UdpReceived: received}
    return FakeTrafficNode(outcomes), FakeTrafficNode(outcomes)


def tcp_nodes(
    client: TcpConnected | Exception, server: TcpListened
) -> tuple[FakeTrafficNode, FakeTrafficNode]:
    return FakeTrafficNode({TcpConnected: client}), FakeTrafficNode({TcpListened: server})


def satisfies_the_protocol(node: FakeTrafficNode) -> TrafficNode:
    """Holds for the type checker."""
    return node


async def kinds(sent: UdpSent = SENT, received: UdpReceived = RECEIVED) -> list[str]:
    measurement = await DRIVER.measure(*nodes(sent, received), UDP, lambda _opens_in, _lasts: None)
    return [warning.kind for warning in measurement.warnings]


async def test_udp_metrics_follow_their_definitions() -> None:
    measurement = await DRIVER.measure(*nodes(), UDP, lambda _opens_in, _lasts: None)
    assert measurement.metrics == pytest.approx(
        {
            "throughput": 1_980_000 * 8 / 2 / 1e6,
            "offered": 8.0,
            "departure_error_p99": 3.0,
            "loss": 10 / 2_000,
            "duplicates": 0.1,
            "reordering": 0.2,
            "packets_per_second": 990.0,
            "arrival_gap_max": 1.0,
            "jitter": 0.25,
            "jitter_last": 0.5,
            "latency_p50": 1.0,
            "latency_p90": 2.0,
            "latency_p99": 3.0,
            "latency_p999": 4.0,
            "latency_max": 9.0,
            "ipdv_p50": 0.02,
            "ipdv_p99": 0.08,
            "pdv_p50": 0.01,
            "pdv_p99": 0.05,
            "pdv_p999": 0.06,
            "reordering_extent_max": 12,
            "loss_burst_mean": 2.5,
            "r_factor": 90.0,
            "mos": 4.3,
        }
    )
    assert set(measurement.metrics) == udp.MEASURES - BOTH_WAYS
    assert measurement.histograms == {
        "latency": b"delays",
        "ipdv": b"ipdv",
        "pdv": b"pdv",
        "departure_error": b"departures",
    }
    assert measurement.series == {
        "throughput": [8.0, 4.0],
        "packets_per_second": [1_000.0, 500.0],
        "latency": [3e-6, 4e-6],
    }
    assert measurement.warnings == []


async def test_udp_forward_has_the_client_send_to_the_port_that_the_server_got() -> None:
    client, server = nodes()
    await DRIVER.measure(client, server, UDP, lambda _opens_in, _lasts: None)
    [receive], [send] = server.jobs, client.jobs
    assert isinstance(receive, UdpReceive)
    assert isinstance(send, UdpSend)
    assert (receive.bind, send.destination) == ("10.0.0.2:0", "10.0.0.2:40000")
    assert send.session == receive.session
    assert send.departures == BitsPerSecond(8_000_000)
    assert (send.schedule.warm_up, send.schedule.measure, send.schedule.cool_down) == (
        500_000_000,
        2_000_000_000,
        250_000_000,
    )


async def test_udp_reverse_has_the_server_send_to_the_client() -> None:
    client, server = nodes()
    workload = replace(
        UDP,
        direction="reverse",
        rate=None,
        ip="ipv6",
        server=Endpoint("fd00::2", 5201),
        connect=Endpoint("fd00::2", 5201),
        client_address="fd00::1",
    )
    await DRIVER.measure(client, server, workload, lambda _opens_in, _lasts: None)
    [receive], [send] = client.jobs, server.jobs
    assert isinstance(receive, UdpReceive)
    assert isinstance(send, UdpSend)
    assert (receive.bind, send.destination) == ("[fd00::1]:0", "[fd00::1]:40000")
    assert send.departures == MaximumRate()


@pytest.mark.parametrize("direction", ["forward", "reverse"])
async def test_tcp_counts_at_the_receiver_and_the_client_always_connects(direction: str) -> None:
    forward = direction == "forward"
    client, server = tcp_nodes(
        TcpConnected(0, 0, SENDER if forward else RECEIVER),
        TcpListened(0, 0, RECEIVER if forward else SENDER),
    )
    workload = replace(
        TCP,
        direction="forward" if forward else "reverse",
        server=Endpoint("10.0.0.2", 5201),
        connect=Endpoint("127.0.0.1", 7000),
    )
    measurement = await DRIVER.measure(client, server, workload, lambda _opens_in, _lasts: None)
    assert measurement.metrics == {
        "throughput": 4.0,
        "retransmits": 4.0,
        "congestion_window": 15.0,
        "tcp_round_trip_p50": 1.0,
        "tcp_round_trip_p99": 3.0,
    }
    assert measurement.series == {
        "throughput": [1.0],
        "tcp_round_trip": pytest.approx([1.0, 2.0, math.nan], nan_ok=True),
        "congestion_window": pytest.approx([10.0, 20.0, math.nan], nan_ok=True),
    }
    [listen], [connect] = server.jobs, client.jobs
    assert isinstance(listen, TcpListen)
    assert isinstance(connect, TcpConnect)
    assert (listen.bind, connect.destination) == ("10.0.0.2:5201", "127.0.0.1:7000")
    assert (connect.side, listen.side) == (("send", "receive") if forward else ("receive", "send"))
    assert connect.options.write_bytes == 131_072
    assert connect.session == listen.session


async def test_each_end_gets_the_schedule_in_its_own_clock() -> None:
    client, server = nodes()
    client.times, server.times = [5_000_000_000], [7_000_000_000]
    measurement = await DRIVER.measure(client, server, UDP, lambda _opens_in, _lasts: None)
    [receive], [send] = server.jobs, client.jobs
    assert isinstance(receive, UdpReceive)
    assert isinstance(send, UdpSend)
    assert send.schedule.start_at > 5_000_000_000
    assert receive.schedule.start_at - send.schedule.start_at == 2_000_000_000
    assert measurement.warnings == []


async def test_a_failed_end_ends_the_trial_and_stops_the_other() -> None:
    client, server = nodes(received=FakeNodeError("the receiver is gone"))
    with pytest.raises(FakeNodeError, match="the receiver is gone"):
        await DRIVER.measure(client, server, UDP, lambda _opens_in, _lasts: None)
    assert [handle.stopped for handle in [*client.handles, *server.handles]] == [True, True]


async def test_a_start_that_was_missed_is_planned_again_with_more_time() -> None:
    client, server = nodes()
    client.misses = 1
    openings: list[float] = []
    await DRIVER.measure(client, server, UDP, lambda opens_in, _lasts: openings.append(opens_in))
    first, second = openings
    assert second > first
    assert [handle.stopped for handle in server.handles] == [True, True]


async def test_clients_that_start_together_have_one_start_with_time_for_all() -> None:
    client, server = nodes()
    client.misses = 1
    openings: list[float] = []
    together = replace(UDP, together=True)
    with pytest.raises(LoadError, match="not ready in time"):
        await DRIVER.measure(client, server, together, lambda opens_in, _lasts: openings.append(opens_in))
    assert len(openings) == 1


async def test_a_client_that_does_not_connect_leaves_no_listener() -> None:
    client, server = tcp_nodes(FakeNodeError("refused"), TcpListened(0, 0, RECEIVER))
    with pytest.raises(FakeNodeError, match="refused"):
        await DRIVER.measure(client, server, TCP, lambda _opens_in, _lasts: None)
    assert [handle.stopped for handle in server.handles] == [True]


async def test_what_did_not_happen_has_no_metric() -> None:
    flawless = changed(
        FLOW,
        reordering_extent=None,
        ipdv=None,
        loss=LossBursts(expected=2_000, lost=0, bursts=0, mean=None, longest=0, ratio=None),
    )
    received = changed(RECEIVED, flow=flawless, voice=None)
    measurement = await DRIVER.measure(*nodes(received=received), UDP, lambda _opens_in, _lasts: None)
    absent = {"ipdv_p50", "ipdv_p99", "reordering_extent_max", "loss_burst_mean", "r_factor", "mos"}
    assert set(measurement.metrics) == udp.MEASURES - BOTH_WAYS - absent
    assert "ipdv" not in measurement.histograms


async def test_a_trial_in_which_nothing_arrives_has_no_result() -> None:
    flow = changed(FLOW, measured=Tally(0, 0), delay=None, jitter_last=None, jitter_mean=None)
    nothing = changed(RECEIVED, flow=flow)
    with pytest.raises(LoadError, match="none of 2000 datagrams arrived"):
        await DRIVER.measure(*nodes(received=nothing), UDP, lambda _opens_in, _lasts: None)


async def test_every_doubt_is_told() -> None:
    assert await kinds(sent=changed(SENT, achieved_rate=7.9e6)) == ["rate-not-reached"]
    assert await kinds(sent=changed(SENT, late=21)) == ["late-departures"]
    assert await kinds(sent=changed(SENT, clock_step=-200_000)) == ["clock-step"]
    assert await kinds(received=changed(RECEIVED, buffer_drops=1)) == ["receiver-drops"]
    assert await kinds(received=changed(RECEIVED, processor=1_950_000_000)) == ["receiver-busy"]
    assert await kinds(sent=changed(SENT, mode=PerPacket())) == ["sending-fell-back"]
    assert await kinds(received=changed(RECEIVED, flow=changed(FLOW, longest_gap=600_000_000))) == ["gap"]
    early = changed(FLOW, delay=changed(DELAY, negative=1))
    assert await kinds(received=changed(RECEIVED, flow=early)) == ["negative-delay"]


CLOCKS_APART = list(range(0, 1_000_000, 1_000)), [500_000_000]


@pytest.mark.parametrize(
    ("workload", "told"),
    [
        pytest.param(UDP, ["clock-offset"], id="datagrams at a rate"),
        pytest.param(replace(UDP, rate=MAXIMUM), [], id="as fast as possible"),
        pytest.param(TCP, [], id="bulk TCP"),
        pytest.param(replace(TCP, profile="telnet", payload_bytes=None), ["clock-offset"], id="messages"),
    ],
)
async def test_clocks_that_differ_are_a_doubt_where_delays_are_asked(
    workload: Workload, told: list[str]
) -> None:
    messages = None if workload.profile == "constant" else FLOW
    receiver = TcpFlow(received=changed(TCP_RECEIVED, messages=messages))
    client = FakeTrafficNode({UdpSent: SENT, TcpConnected: TcpConnected(0, 0, SENDER)})
    server = FakeTrafficNode({UdpReceived: RECEIVED, TcpListened: TcpListened(0, 0, receiver)})
    client.times, server.times = map(list, CLOCKS_APART)
    measurement = await DRIVER.measure(client, server, workload, lambda _opens_in, _lasts: None)
    assert [warning.kind for warning in measurement.warnings] == told
    assert all("right to within 0.0005 ms" in warning.message for warning in measurement.warnings)
