"""What the engine's jobs are asked for each kind of traffic."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_traffic_node import FakeTrafficNode
from load_workloads import UDP
from msgspec.structs import replace as changed
from test_load_engine import DELAY, RECEIVED, SENT

from tunnelbench.lab.traffic import (
    Bursts,
    Constant,
    EchoProbe,
    IcmpEcho,
    PacketsPerSecond,
    PerPacket,
    Probed,
    RoundTripSeries,
    Segmented,
    Transacted,
    TransactionRun,
    TransactionServe,
    TransactionsServed,
    UdpReceive,
    UdpSend,
    Zeros,
)
from tunnelbench.load.base import Measurement, Traffic, Workload
from tunnelbench.load.engine import DRIVER
from tunnelbench.load.profiles import profile
from tunnelbench.study import quantity
from tunnelbench.study.model import Socket
from tunnelbench.study.quantity import MAXIMUM, SendingRate

SERIES = RoundTripSeries(
    step=100_000_000,
    begun=[10, 10],
    completed=[10, 9],
    shortest=[1, 1],
    mean=[2.0, 2.0],
    longest=[3, 3],
)
PROBED = Probed(
    sent=200,
    replies=190,
    failures=0,
    duplicates=19,
    reordered=38,
    skipped=0,
    round_trip=changed(DELAY, p50=500_000),
    round_trip_from_intended=DELAY,
    first_reply_after=1,
    timestamps="kernel",
    series=SERIES,
    total_sent=250,
    total_replies=250,
    late=0,
    processor=1,
)
TRANSACTED = Transacted(
    transactions=3_000,
    failures=0,
    round_trip=DELAY,
    connect=changed(DELAY, p50=200_000),
    series=SERIES,
    total=4_000,
    processor=1,
)
SERVED = TransactionsServed(responses=4_000, connections=1, foreign=0, processor=1)


async def measured(workload: Workload, client: FakeTrafficNode, server: FakeTrafficNode) -> Measurement:
    return await DRIVER.measure(client, server, workload, lambda _opens_in, _lasts: None)


def node(*outcomes: object) -> FakeTrafficNode:
    return FakeTrafficNode({type(outcome): outcome for outcome in outcomes})


async def sent_for(workload: Workload) -> tuple[UdpSend, UdpReceive]:
    client, server = node(SENT), node(RECEIVED)
    await measured(workload, client, server)
    [send], [receive] = client.jobs, server.jobs
    assert isinstance(send, UdpSend)
    assert isinstance(receive, UdpReceive)
    return send, receive


async def test_a_profile_says_sizes_departures_and_codec() -> None:
    voice = replace(UDP, profile="voip-g711", payload_bytes=None, rate=None, seed=7)
    send, receive = await sent_for(voice)
    ready = profile("voip-g711")
    assert (send.departures, send.sizes, send.seed) == (ready.departures, ready.sizes, 7)
    assert receive.voice == ready.codec


async def test_a_profile_of_sizes_alone_is_sent_at_the_rate_of_the_study() -> None:
    send, receive = await sent_for(
        replace(UDP, profile="imix", payload_bytes=None, rate=SendingRate(500, "packets/s"))
    )
    assert send.departures == PacketsPerSecond(500)
    assert send.sizes == profile("imix").sizes
    assert receive.voice is None


async def test_how_datagrams_are_sent_is_as_the_workload_says() -> None:
    send, _ = await sent_for(
        replace(UDP, rate=quantity.Bursts(100, 10**7), sending="segmented", content=Zeros())
    )
    assert (send.departures, send.sizes) == (Bursts(100, 10**7), Constant(1000))
    assert (send.mode, send.content) == (Segmented(64), Zeros())
    send, receive = await sent_for(replace(UDP, sending="per-packet", socket=Socket(dscp=46, ttl=9)))
    assert send.mode == PerPacket()
    assert (send.socket.dscp, send.socket.ttl, send.socket.dont_fragment) == (46, 9, None)
    assert receive.socket == send.socket


async def test_both_directions_are_two_flows_and_one_measurement() -> None:
    half = changed(RECEIVED.flow.arrived, packets=990, bytes=990_000)
    slower = changed(RECEIVED, flow=changed(RECEIVED.flow, arrived=half, delay=changed(DELAY, p50=5_000_000)))
    client = node(SENT, slower)
    server = node(SENT, RECEIVED)
    measurement = await measured(replace(UDP, direction="both"), client, server)
    metrics = measurement.metrics
    assert metrics["throughput_forward"] == pytest.approx(7.92)
    assert metrics["throughput_reverse"] == pytest.approx(3.96)
    assert metrics["throughput"] == pytest.approx(7.92 + 3.96)
    assert metrics["offered"] == pytest.approx(16.0)
    assert metrics["loss"] == metrics["loss_forward"] == pytest.approx(10 / 2_000)
    assert (metrics["latency_p50"], metrics["latency_p50_forward"]) == (5.0, 1.0)
    assert metrics["mos"] == 4.3
    assert measurement.delivered_bytes == 2 * RECEIVED.flow.total.bytes
    assert set(metrics) <= DRIVER.measures
    assert {"latency_forward", "latency_reverse"} <= set(measurement.histograms)


async def test_echo_requests_are_timed_from_when_they_were_due() -> None:
    workload = replace(UDP, transport="icmp", payload_bytes=56, rate=SendingRate(100, "packets/s"))
    client, server = node(PROBED), node()
    measurement = await measured(workload, client, server)
    [probe] = client.jobs
    assert isinstance(probe, EchoProbe)
    assert probe.destination == IcmpEcho("10.0.0.2")
    assert (probe.interval, probe.payload_bytes) == (10_000_000, 56)
    assert server.jobs == []
    assert measurement.metrics == pytest.approx(
        {
            "loss": 0.05,
            "duplicates": 0.1,
            "reordering": 0.2,
            "packets_per_second": 95.0,
            "round_trip_p50": 1.0,
            "round_trip_p90": 2.0,
            "round_trip_p99": 3.0,
            "round_trip_p999": 4.0,
            "round_trip_max": 9.0,
        }
    )
    assert measurement.delivered_bytes == 2 * 250 * 56
    await measured(replace(workload, rate=MAXIMUM), client, server)
    assert isinstance(client.jobs[1], EchoProbe)
    assert client.jobs[1].interval == 0


@pytest.mark.parametrize("fresh", [True, False])
async def test_transactions_have_a_rate_and_round_trips(fresh: bool) -> None:
    workload = replace(
        UDP,
        transport="tcp",
        pattern="connect-request-response" if fresh else "request-response",
        rate=None,
        payload_bytes=64,
        concurrency=4,
    )
    client = node(TRANSACTED if fresh else changed(TRANSACTED, connect=None))
    server = node(SERVED)
    measurement = await measured(workload, client, server)
    [run], [serve] = client.jobs, server.jobs
    assert isinstance(run, TransactionRun)
    assert isinstance(serve, TransactionServe)
    assert run.transaction == serve.transaction
    assert (run.transaction.request_bytes, run.transaction.response_bytes) == (64, 64)
    assert (run.transaction.fresh_connections, run.transaction.concurrency) == (fresh, 4)
    assert measurement.metrics["transactions_per_second"] == 1_500
    assert measurement.metrics["round_trip_p99"] == 3.0
    assert ("connect_p50" in measurement.metrics) == fresh
    assert set(measurement.metrics) <= DRIVER.measures
    assert measurement.delivered_bytes == 4_000 * 128


@pytest.mark.parametrize(
    ("traffic", "lack"),
    [
        (replace(UDP, payload_bytes=11), "send datagrams of less than 12 bytes"),
        (replace(UDP, profile="nonsense"), "send in the profile nonsense"),
        (replace(UDP, transport="icmp", payload_bytes=8), "with less than 12 bytes of data"),
        (replace(UDP, transport="icmp", rate=quantity.Bursts(2, 10**9)), "send echo requests in bursts"),
        (replace(UDP, transport="tcp", rate=None, profile="telnet", streams=2), "several streams"),
        (replace(UDP, transport="tcp", pattern="request-response", congestion_control="bbr"), "MSS"),
        (replace(UDP, rate=quantity.Bursts(2, 10**9), direction="both", profile="imix"), None),
    ],
)
def test_what_the_engine_refuses(traffic: Traffic, lack: str | None) -> None:
    refusal = DRIVER.refusal(traffic)
    assert (refusal is None) if lack is None else (refusal is not None and lack in refusal)
