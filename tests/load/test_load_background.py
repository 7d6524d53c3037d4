"""A bulk stream beside measured traffic, by the engine on nodes that answer what is laid down."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_traffic_node import FakeNodeError, FakeTrafficNode
from load_workloads import UDP
from msgspec.structs import replace as changed
from test_load_engine import RECEIVED, RECEIVER, SENDER, SENT, TCP_RECEIVED, TCP_SENT

from tunnelbench.lab.traffic import (
    TcpConnect,
    TcpConnected,
    TcpFlow,
    TcpListen,
    TcpListened,
    UdpReceive,
    UdpReceived,
    UdpSend,
    UdpSent,
)
from tunnelbench.load.background import AFTER_S, BEFORE_S, OF_BACKGROUND, bulk, measure_beside
from tunnelbench.load.base import Endpoint, LoadError, Measurement, Workload
from tunnelbench.load.clients import all_clients
from tunnelbench.load.engine import DRIVER
from tunnelbench.study.vocabulary import Background

BOTH = TcpFlow(sent=TCP_SENT, received=TCP_RECEIVED)


def stream(background: Background) -> Workload:
    traffic = bulk(background, "ipv4")
    return replace(
        UDP,
        transport=traffic.transport,
        payload_bytes=traffic.payload_bytes,
        rate=traffic.rate,
        direction=traffic.direction,
        server=Endpoint("10.0.0.2", 5301),
        connect=Endpoint("10.0.0.2", 5301),
    )


async def beside(
    background: Background, client_flow: TcpFlow, server_flow: TcpFlow
) -> tuple[Measurement, FakeTrafficNode, FakeTrafficNode]:
    client = FakeTrafficNode({UdpSent: SENT, TcpConnected: TcpConnected(0, 0, client_flow)})
    server = FakeTrafficNode({UdpReceived: RECEIVED, TcpListened: TcpListened(0, 0, server_flow)})
    found = await measure_beside(
        stream(background), DRIVER, client, server, UDP, lambda _opens_in, _lasts: None
    )
    return found, client, server


async def test_the_probe_has_its_metrics_and_the_stream_its_throughput() -> None:
    alone = await DRIVER.measure(
        FakeTrafficNode({UdpSent: SENT}),
        FakeTrafficNode({UdpReceived: RECEIVED}),
        UDP,
        lambda _opens_in, _lasts: None,
    )
    found, _, _ = await beside("tcp", SENDER, RECEIVER)
    assert found.metrics == {**alone.metrics, "background_throughput": 4.0}
    assert found.histograms == alone.histograms
    assert (found.delivered_bytes, found.delivered_packets) == (None, None)


async def test_both_flows_begin_at_once_and_the_stream_ends_last() -> None:
    windows: list[tuple[float, float]] = []
    client = FakeTrafficNode({UdpSent: SENT, TcpConnected: TcpConnected(0, 0, SENDER)})
    server = FakeTrafficNode({UdpReceived: RECEIVED, TcpListened: TcpListened(0, 0, RECEIVER)})
    await measure_beside(
        stream("tcp"), DRIVER, client, server, UDP, lambda opens_in, lasts: windows.append((opens_in, lasts))
    )
    jobs = {type(job): job for job in (*client.jobs, *server.jobs)}
    send, receive, connect, listen = (jobs[kind] for kind in (UdpSend, UdpReceive, TcpConnect, TcpListen))
    assert isinstance(send, UdpSend)
    assert isinstance(receive, UdpReceive)
    assert isinstance(connect, TcpConnect)
    assert isinstance(listen, TcpListen)
    assert (listen.bind, connect.destination) == ("10.0.0.2:5301", "10.0.0.2:5301")
    assert send.schedule == receive.schedule
    assert send.schedule.start_at == connect.schedule.start_at
    assert send.schedule.warm_up == connect.schedule.warm_up == round((BEFORE_S + 0.5) * 1e9)
    assert send.schedule.measure == connect.schedule.measure
    assert connect.schedule.cool_down == send.schedule.cool_down + round(AFTER_S * 1e9)
    # The window is that of the measured traffic, and is told once.
    ((opens_in, lasts),) = windows
    assert opens_in > BEFORE_S
    assert lasts == UDP.measure_s


async def test_each_direction_of_a_stream_both_ways_is_told() -> None:
    found, _, _ = await beside("tcp-both", BOTH, BOTH)
    assert {name: value for name, value in found.metrics.items() if name in OF_BACKGROUND} == {
        "background_throughput": 8.0,
        "background_throughput_forward": 4.0,
        "background_throughput_reverse": 4.0,
    }


async def test_a_stream_that_carries_less_than_what_is_measured_puts_no_load_on_it() -> None:
    less = TcpFlow(received=changed(TCP_RECEIVED, measured_bytes=500_000))
    found, _, _ = await beside("tcp", SENDER, less)
    assert [warning.kind for warning in found.warnings] == ["idle-background"]
    starved = TcpFlow(sent=TCP_SENT, received=changed(TCP_RECEIVED, measured_bytes=500_000))
    found, _, _ = await beside("tcp-both", starved, BOTH)
    assert "idle-background" in [warning.kind for warning in found.warnings]


async def test_doubts_about_the_stream_are_doubts_about_the_trial() -> None:
    stalled = TcpFlow(received=changed(TCP_RECEIVED, measured_bytes=10_000_000, longest_gap=600_000_000))
    found, _, _ = await beside("tcp", SENDER, stalled)
    (warning,) = found.warnings
    assert warning.kind == "gap"
    assert warning.message.startswith("of the TCP stream beside the measured traffic: nothing arrived for")


async def test_a_probe_that_fails_ends_the_stream() -> None:
    client = FakeTrafficNode({UdpSent: SENT, TcpConnected: TcpConnected(0, 0, SENDER)})
    server = FakeTrafficNode(
        {UdpReceived: FakeNodeError("the receiver is gone"), TcpListened: TcpListened(0, 0, RECEIVER)}
    )
    with pytest.raises(FakeNodeError, match="the receiver is gone"):
        await measure_beside(stream("tcp"), DRIVER, client, server, UDP, lambda _opens_in, _lasts: None)
    assert all(handle.stopped for handle in (*client.handles, *server.handles))


async def test_a_probe_that_misses_its_start_does_not_begin_after_the_stream() -> None:
    client = FakeTrafficNode({UdpSent: SENT, TcpConnected: TcpConnected(0, 0, SENDER)}, misses=1)
    server = FakeTrafficNode({UdpReceived: RECEIVED, TcpListened: TcpListened(0, 0, RECEIVER)})
    with pytest.raises(LoadError, match="not ready in time"):
        await measure_beside(stream("tcp"), DRIVER, client, server, UDP, lambda _opens_in, _lasts: None)
    assert len(client.jobs) == 2


def test_the_streams_of_several_clients_are_summed_up() -> None:
    one = Measurement(metrics={"latency_p50": 2.0, "background_throughput": 10.0})
    other = Measurement(metrics={"latency_p50": 4.0, "background_throughput": 30.0})
    assert all_clients([one, other]).metrics == {"latency_p50": 3.0, "background_throughput": 40.0}
