"""What the engine says of a flow, against a capture of it and against a network whose faults are known."""

from __future__ import annotations

import math
import statistics
import struct
import subprocess
from asyncio import gather
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from tunnelbench.lab.image import find
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.topology import TOPOLOGIES, Family
from tunnelbench.lab.traffic import (
    Batched,
    Histogram,
    PacketsPerSecond,
    Random,
    Schedule,
    UdpReceive,
    UdpReceived,
    UdpSend,
    UdpSent,
    Uniform,
)
from tunnelbench.tunnels.base import gateways
from tunnelbench.tunnels.plain import TUNNEL

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

TOPOLOGY = TOPOLOGIES["site-to-site"]
PORT = 5201
SESSION = 4711
CAPTURE = "/tmp/arrivals.pcap"
_MOST_RUNS = 10
_DUPLICATES_OUTSIDE = 40
"""Copies of what was sent before and after the measured window may be so many: nobody counts them apart."""
STANDARD_ERRORS = 4.5
"""How far a share may be from the true one: beyond that once in 150 000 runs."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab() -> AsyncGenerator[Lab]:
    """Its gateways are kernels, which have the network emulator."""
    plan = LabPlan(TOPOLOGY, find(), dict.fromkeys(TOPOLOGY.gateways, Runtime.KERNEL))
    async with Lab(plan) as lab, AsyncExitStack() as cleanup:
        await TUNNEL.up(*gateways(lab), TUNNEL.variant("none"), cleanup)
        yield lab


@dataclass(frozen=True)
class Flow:
    """One run, as both its ends saw it."""

    schedule: Schedule
    sent: UdpSent
    received: UdpReceived


async def emulate(lab: Lab, *faults: str) -> None:
    """Has the wire treat the datagrams to the server so."""
    await lab.nodes["gw1"].run(
        "tc", "qdisc", "replace", "dev", "wan", "root", "netem", *faults, "limit", "9999"
    )


async def run(lab: Lab, rate: int, seconds: float) -> Flow:
    """Sends datagrams of all sizes at a rate."""
    client, server = lab.sites
    receiving, sending = lab.nodes[server.host], lab.nodes[client.host]
    schedule = Schedule(await sending.clock() + 300_000_000, 200_000_000, round(seconds * 1e9), 100_000_000)
    bind = f"{server.inside.address(Family.IPV4)}:{PORT}"
    receiver = await receiving.start_traffic(
        UdpReceive(bind=bind, session=SESSION, schedule=schedule), UdpReceived
    )
    send = UdpSend(
        destination=bind,
        session=SESSION,
        schedule=schedule,
        departures=PacketsPerSecond(rate),
        sizes=Uniform(low=12, high=1400),
        seed=3,
        mode=Batched(16),
        content=Random(),
    )
    sender = await sending.start_traffic(send, UdpSent)
    sent, received = await gather(sender.outcome(seconds + 5), receiver.outcome(seconds + 5))
    return Flow(schedule, sent, received)


async def undisturbed(lab: Lab, rate: int, seconds: float) -> Flow:
    """A run in which nothing was lost but what the emulator dropped, by its own count.

    Kernels that run as processes lose packets when others want the processor; such a run is made again.
    """
    for _ in range(_MOST_RUNS):
        before = await dropped(lab)
        flow = await run(lab, rate, seconds)
        lost = flow.sent.total.packets + flow.received.flow.duplicates - flow.received.flow.total.packets
        if abs(lost - (await dropped(lab) - before)) <= _DUPLICATES_OUTSIDE:
            return flow
    pytest.fail("the machine was too busy: packets were lost that the emulator did not drop")


async def dropped(lab: Lab) -> int:
    """Packets that the emulator has dropped so far."""
    shown = await lab.nodes["gw1"].run("tc", "-s", "-j", "qdisc", "show", "dev", "wan")
    return msgspec.json.decode(shown.stdout, type=list[dict[str, Any]])[0]["drops"]


async def test_known_loss_and_delay_are_found(lab: Lab) -> None:
    await emulate(lab, "delay", "20ms", "loss", "5%")
    flow = await undisturbed(lab, 1000, 4)
    loss = 1 - flow.received.flow.measured.packets / flow.sent.measured.packets
    assert_share(loss, 0.05, flow.sent.measured.packets)
    assert flow.received.flow.delay is not None
    # The emulator never sends early, and one of thousands is held up by no busy machine.
    assert 20e6 <= flow.received.flow.delay.min < 25e6


async def test_known_duplication_is_found(lab: Lab) -> None:
    await emulate(lab, "duplicate", "4%")
    flow = await undisturbed(lab, 1000, 4)
    packets = flow.received.flow.measured.packets
    assert_share(flow.received.flow.duplicates / packets, 0.04, packets)


async def test_known_reordering_is_found(lab: Lab) -> None:
    """One in five is not delayed; the delay lets it overtake the one before it, and no other."""
    interval_ms, jump = 20, 0.2
    await emulate(lab, "delay", f"{interval_ms * 1.5:g}ms", "reorder", f"{jump:.0%}")
    flow = await undisturbed(lab, 1000 // interval_ms, 12)
    packets = flow.received.flow.measured.packets
    # A datagram is reordered where it waits and its successor does not.
    assert_share(flow.received.flow.reordered / packets, (1 - jump) * jump, packets)
    extent = flow.received.flow.reordering_extent
    assert extent is not None
    # A busy machine now and then delays one by more than the distance to its successor.
    assert (extent.min, extent.p50) == (1, 1)


def assert_share(found: float, true: float, count: int) -> None:
    """That a share of `count` independent cases fits the true one."""
    assert abs(found - true) <= STANDARD_ERRORS * math.sqrt(true * (1 - true) / count)


@dataclass(frozen=True)
class Arrival:
    """A datagram in the capture. Times are ns since the start of the schedule."""

    sequence: int
    intended: int
    arrived: int
    size: int

    @property
    def delay(self) -> int:
        """ns."""
        return self.arrived - self.intended


async def test_a_capture_of_a_run_says_the_same(lab: Lab, tmp_path: Path) -> None:
    """With loss, copies and reordering on the way; read by tshark, counted and computed by the book here."""
    await emulate(lab, "delay", "4ms", "reorder", "10%", "loss", "3%", "duplicate", "2%")
    watched = lab.nodes[lab.sites[1].host]
    options = ("-i", "eth0", "-w", CAPTURE, "--immediate-mode", "--time-stamp-precision=nano")
    capture = await watched.spawn("tcpdump", *options, f"udp port {PORT}")
    await capture.line("listening on", 10)
    flow = await run(lab, 1000, 3)
    await capture.stop()
    pcap = tmp_path / "arrivals.pcap"
    pcap.write_bytes(await watched.read_file(CAPTURE, 1 << 26))
    arrivals = read(pcap, flow.schedule.start_at)
    report = flow.received.flow
    assert (report.total.packets, report.total.bytes) == (len(arrivals), sum(one.size for one in arrivals))

    warm_up, measure = flow.schedule.warm_up, flow.schedule.measure
    window = [one for one in arrivals if warm_up <= one.intended < warm_up + measure]
    unique = [one for one in first_copies(arrivals) if one in window]
    assert (report.measured.packets, report.measured.bytes) == (len(unique), sum(one.size for one in unique))
    assert report.duplicates == len(window) - len(unique)
    assert report.reordered == sum(one in window for one in reordered(first_copies(arrivals)))

    jitters = jitter(unique)
    assert report.jitter_last == pytest.approx(jitters[-1], rel=1e-6)
    assert report.jitter_mean == pytest.approx(statistics.fmean(jitters), rel=1e-6)
    delays = [one.delay for one in unique]
    assert_same_distribution(report.delay, delays)
    assert_same_distribution(report.pdv, [delay - min(delays) for delay in delays])
    by_sequence = {one.sequence: one for one in unique}
    variations = [
        one.delay - by_sequence[one.sequence - 1].delay for one in unique if one.sequence - 1 in by_sequence
    ]
    assert report.ipdv is not None
    assert_same_distribution(report.ipdv.absolute, [abs(variation) for variation in variations])


def read(pcap: Path, start_at: int) -> list[Arrival]:
    """The datagrams of the session, in the order of their arrival, as tshark reads them."""
    command = ["tshark", "-r", str(pcap), "-d", f"udp.port=={PORT},data", "-T", "fields"]
    command += ["-e", "frame.time_epoch", "-e", "udp.length", "-e", "data.data"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [arrival for line in lines if (arrival := parse(line, start_at)) is not None]


def parse(line: str, start_at: int) -> Arrival | None:
    """One line of tshark's."""
    time, length, content = line.split("\t")
    seconds, _, fraction = time.partition(".")
    head = bytes.fromhex(content[:24])
    sequence, session = struct.unpack_from(">IH", head)
    if session != SESSION:
        return None
    arrived = int(seconds) * 1_000_000_000 + int(fraction.ljust(9, "0")) - start_at
    return Arrival(sequence, int.from_bytes(head[6:12], "big"), arrived, int(length) - 8)


def first_copies(arrivals: list[Arrival]) -> list[Arrival]:
    """The arrivals without those that repeat an earlier one."""
    first: dict[int, Arrival] = {}
    for arrival in arrivals:
        first.setdefault(arrival.sequence, arrival)
    return list(first.values())


def reordered(arrivals: list[Arrival]) -> list[Arrival]:
    """RFC 4737, section 3.3."""
    next_expected = 0
    late: list[Arrival] = []
    for arrival in arrivals:
        if arrival.sequence < next_expected:
            late.append(arrival)
        else:
            next_expected = arrival.sequence + 1
    return late


def jitter(arrivals: list[Arrival]) -> list[float]:
    """RFC 3550, section 6.4.1: the estimate after each arrival but the first."""
    estimates: list[float] = []
    estimate = 0.0
    for earlier, later in pairwise(arrivals):
        estimate += (abs(later.delay - earlier.delay) - estimate) / 16
        estimates.append(estimate)
    return estimates


def assert_same_distribution(histogram: Histogram | None, values: list[int]) -> None:
    """To the three digits that a histogram keeps."""
    assert histogram is not None
    assert histogram.count == len(values)
    in_order = sorted(values)
    for quantile, found in ((0.5, histogram.p50), (0.9, histogram.p90), (0.99, histogram.p99)):
        exact = in_order[math.ceil(quantile * len(values)) - 1]
        assert found == pytest.approx(exact, rel=2e-3, abs=2_000)
    assert histogram.max == pytest.approx(in_order[-1], rel=2e-3)
