"""Every load tool that the image has, in a real lab without a VPN: what it says fits what was asked."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import fields, replace
from pathlib import Path

import pytest
import pytest_asyncio
from _pytest.mark import ParameterSet

from tunnelbench.campaign.campaign import Wish, start
from tunnelbench.campaign.observer import Silent
from tunnelbench.errors import UserError
from tunnelbench.lab.image import find
from tunnelbench.lab.lab import Lab, LabPlan
from tunnelbench.lab.runtimes import programs_missing
from tunnelbench.lab.topology import TOPOLOGIES, Family
from tunnelbench.load import drivers
from tunnelbench.load.base import Endpoint, LoadDriver, Pattern, Traffic, Workload
from tunnelbench.load.both_ways import BOTH_WAYS
from tunnelbench.load.content import content_of
from tunnelbench.study.model import Socket
from tunnelbench.study.quantity import MAXIMUM, Bursts, Rate, SendingRate
from tunnelbench.study.vocabulary import Direction, InternetProtocol, Transport
from tunnelbench.tunnels.base import gateways
from tunnelbench.tunnels.path import SERVICE_PORT
from tunnelbench.tunnels.plain import TUNNEL

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

RATE = 4_000_000
PAYLOAD = 1000
TRANSACTIONS: list[tuple[Transport, Pattern]] = [
    ("tcp", "request-response"),
    ("udp", "request-response"),
    ("tcp", "connect-request-response"),
]


def carrying(transport: Transport, pattern: Pattern = "stream") -> list[ParameterSet]:
    """The drivers that can make such traffic."""
    traffic = Traffic(transport=transport, ip="ipv4", pattern=pattern, payload_bytes=PAYLOAD, rate=None)
    able = [(name, driver) for name, driver in drivers().items() if driver.refusal(traffic) is None]
    return [pytest.param(driver, id=name) for name, driver in able]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab() -> AsyncGenerator[Lab]:
    async with Lab(LabPlan(TOPOLOGIES["site-to-site"], find())) as lab, AsyncExitStack() as cleanup:
        await TUNNEL.up(*gateways(lab), TUNNEL.variant("none"), cleanup)
        yield lab


async def measure(
    lab: Lab,
    driver: LoadDriver,
    transport: Transport,
    direction: Direction,
    rate: Rate | None,
    ip: InternetProtocol = "ipv4",
    pattern: Pattern = "stream",
) -> dict[str, float]:
    traffic = Traffic(
        transport=transport,
        ip=ip,
        pattern=pattern,
        payload_bytes=PAYLOAD,
        rate=rate,
        direction=direction,
    )
    return await measure_traffic(lab, driver, traffic)


async def measure_traffic(lab: Lab, driver: LoadDriver, traffic: Traffic) -> dict[str, float]:
    lacking = await programs_missing(lab.plan.image_of("host1"), driver.programs)
    if lacking:
        pytest.skip(f"the image {lab.plan.image_of('host1').name} has no {', '.join(lacking)}")
    client, server = lab.sites
    family = Family(traffic.ip)
    reached = Endpoint(str(server.inside.address(family)), SERVICE_PORT)
    workload = Workload(
        **{part.name: getattr(traffic, part.name) for part in fields(Traffic)},
        warm_up_s=0.1,
        measure_s=1.0,
        cool_down_s=0.1,
        server=reached,
        connect=reached,
        client_address=str(client.inside.address(family)),
    )
    windows: list[float] = []
    measurement = await driver.measure(
        lab.nodes[client.host],
        lab.nodes[server.host],
        workload,
        lambda _opens_in, lasts: windows.append(lasts),
    )
    assert windows == [pytest.approx(1.0)]
    assert set(measurement.metrics) <= driver.measures
    assert not [
        program
        for node in lab.nodes.values()
        for program in (await node.run("ps", "-eo", "comm=")).text.split()
        if program in driver.programs
    ]
    return dict(measurement.metrics)


OCCASIONAL = {"reordering_extent_max", "loss_burst_mean", "r_factor", "mos"}
"""What only a flow with disorder, with losses, or of a voice call has."""
OF_OTHERS = ("round_trip_", "connect_", "transactions_", "tcp_", "retransmits", "congestion_window")
"""The beginnings of what only echo requests, transactions or TCP have."""


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("driver", carrying("udp"))
async def test_udp_arrives_at_the_rate_that_was_sent(
    lab: Lab, driver: LoadDriver, direction: Direction
) -> None:
    # Debian builds netperf without rate control.
    metrics = await measure(
        lab, driver, "udp", direction, MAXIMUM if driver.name == "netperf" else SendingRate(RATE)
    )
    usual = driver.measures - OCCASIONAL - BOTH_WAYS
    streamed = {name for name in usual if not name.startswith(OF_OTHERS)}
    assert streamed <= set(metrics)
    assert 0 <= metrics["loss"] < 1
    arrived = metrics["offered"] * (1 - metrics["loss"])
    assert metrics["throughput"] == pytest.approx(arrived, rel=0.1)
    assert metrics["packets_per_second"] * PAYLOAD * 8 / 1e6 == pytest.approx(metrics["throughput"], rel=0.05)
    if driver.name != "netperf":
        # A busy machine may hold packets up, and D-ITG then sends fewer; none sends more.
        assert 0 < metrics["offered"] * 1e6 < 1.1 * RATE


@pytest.mark.parametrize("direction", ["forward", "reverse"])
@pytest.mark.parametrize("driver", carrying("tcp"))
async def test_tcp_arrives(lab: Lab, driver: LoadDriver, direction: Direction) -> None:
    metrics = await measure(lab, driver, "tcp", direction, None)
    assert metrics["throughput"] > 1


@pytest.mark.parametrize("driver", carrying("tcp"))
async def test_ipv6_arrives(lab: Lab, driver: LoadDriver) -> None:
    metrics = await measure(lab, driver, "tcp", "forward", None, "ipv6")
    assert metrics["throughput"] > 1


@pytest.mark.parametrize("ip", ["ipv4", "ipv6"])
@pytest.mark.parametrize("rate", [SendingRate(RATE // 10), MAXIMUM], ids=["paced", "max"])
@pytest.mark.parametrize("driver", carrying("icmp"))
async def test_echo_requests_come_back(
    lab: Lab, driver: LoadDriver, rate: SendingRate, ip: InternetProtocol
) -> None:
    metrics = await measure(lab, driver, "icmp", "forward", rate, ip)
    assert metrics["loss"] < 0.5
    assert metrics["duplicates"] == 0
    assert 0 < metrics["round_trip_p50"] <= metrics["round_trip_p99"] <= metrics["round_trip_max"]


@pytest.mark.parametrize(
    ("transport", "pattern", "driver"),
    [
        pytest.param(transport, pattern, *able.values, id=f"{transport}-{pattern}-{able.id}")
        for transport, pattern in TRANSACTIONS
        for able in carrying(transport, pattern)
    ],
)
async def test_transactions_are_completed(
    lab: Lab, driver: LoadDriver, transport: Transport, pattern: Pattern
) -> None:
    metrics = await measure(lab, driver, transport, "forward", None, pattern=pattern)
    assert metrics["transactions_per_second"] > 2
    assert 0 < metrics["round_trip_p50"] <= metrics["round_trip_p99"] <= metrics["round_trip_max"]


TCP = Traffic(transport="tcp", ip="ipv4", payload_bytes=PAYLOAD, rate=None)
UDP = replace(TCP, transport="udp", rate=SendingRate(RATE))
PROFILE = {"payload_bytes": None, "rate": None}


@pytest.mark.parametrize("traffic", [replace(TCP, direction="both"), replace(UDP, direction="both")])
@pytest.mark.parametrize("name", ["engine", "iperf3"])
async def test_traffic_goes_both_ways_at_once(lab: Lab, name: str, traffic: Traffic) -> None:
    metrics = await measure_traffic(lab, drivers()[name], traffic)
    ways = (metrics["throughput_forward"], metrics["throughput_reverse"])
    assert min(ways) > 1
    assert metrics["throughput"] == pytest.approx(sum(ways))


@pytest.mark.parametrize(
    "traffic",
    [
        replace(TCP, streams=4, socket=Socket(buffer=65_536, no_delay=True, dscp=46)),
        replace(TCP, congestion_control="reno", socket=Socket(mss=1000)),
        replace(TCP, transport="tcp", profile="telnet", **PROFILE, seed=3),
        replace(TCP, content=content_of("text", {})),
        replace(UDP, sending="per-packet", socket=Socket(ttl=30, dont_fragment=True)),
        replace(UDP, sending="segmented", rate=MAXIMUM),
        replace(UDP, rate=Bursts(20, 50_000_000), content=content_of("zeros", {})),
        replace(UDP, profile="imix", payload_bytes=None, rate=SendingRate(500, "packets/s"), seed=3),
        replace(UDP, profile="voip-g711", **PROFILE),
        replace(UDP, profile="gaming-quake3", direction="reverse", **PROFILE),
    ],
    ids=lambda traffic: f"{traffic.transport}-{traffic.profile}-{traffic.sending}-{traffic.streams}",
)
async def test_the_engine_sends_in_every_shape(lab: Lab, traffic: Traffic) -> None:
    assert drivers()["engine"].refusal(traffic) is None
    metrics = await measure_traffic(lab, drivers()["engine"], traffic)
    assert metrics["throughput"] > 0
    assert ("mos" in metrics) == traffic.profile.startswith("voip")
    assert ("latency_p50" in metrics) == (traffic.transport == "udp" or traffic.profile == "telnet")


STUDY = """
[study]
id = "test"
title = "Test"
question = "Does it run?"

[factors]
tunnel = ["open"]
load = ["engine", "netperf"]
"""


async def test_a_study_with_a_load_that_the_image_lacks_is_refused_before_it_starts(tmp_path: Path) -> None:
    if not await programs_missing(find(), drivers()["netperf"].programs):
        pytest.skip("the image has netperf")
    with pytest.raises(
        UserError, match="the load netperf runs netperf, netserver, which the image"
    ) as caught:
        await start(STUDY, "test.toml", tmp_path / "out", Wish(), Silent())
    assert "tunnelbench image build" in str(caught.value)
    assert not (tmp_path / "out").exists()
