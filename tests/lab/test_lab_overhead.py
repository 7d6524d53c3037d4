"""The overhead model against packets in a real lab: every VPN whose packets are described, byte by byte."""

from __future__ import annotations

import contextlib
import math
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from tunnel_labs import TunnelLabs, labs_for

from tunnelbench.campaign.trial import Bench, run_trial
from tunnelbench.lab.cleanliness import forget_paths
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.image import DEFAULT_IMAGE
from tunnelbench.lab.lab import Lab
from tunnelbench.lab.messages import KeptPacket
from tunnelbench.lab.topology import Family
from tunnelbench.lab.traffic import EchoProbe, ProbeCount, Probed, SocketOptions, UdpEcho
from tunnelbench.lab.traffic.echo import Echoed, EchoServe
from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead.model import bulk_payload, largest_unfragmented_payload, predict
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import parse_sending_rate
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Place, gateways
from tunnelbench.tunnels.path import SERVICE_PORT
from tunnelbench.witness.witness import await_first_reply

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

MTU = 1500
SOURCE_PORT = 40_000
SECOND = 1_000_000_000
BARE = 60
"""What a tunnel with acknowledgements sends of its own is not longer."""
ATTEMPTS = 4
"""Of what a tunnel sends by itself, some may fall between the packets that are looked at."""


def tried(*, stream: bool) -> list[tuple[str, str]]:
    """The first and the last suite that each can have: often a classic cipher with a hash, and an AEAD."""
    chosen = [
        (name, suite)
        for name, tunnel in all_tunnels().items()
        if (can := [one for one in tunnel.suites if tunnel.objection(tunnel.variant(one), PLACE) is None])
        for suite in dict.fromkeys([can[0], can[-1]])
    ]
    return [
        (name, suite)
        for name, suite in chosen
        if (found := (tunnel := all_tunnels()[name]).encapsulation(tunnel.variant(suite))) is not None
        if found.stream is stream and not found.compresses
    ]


PLACE = Place(DEFAULT_IMAGE, "site-to-site")
FIXED, STREAMS = tried(stream=False), tried(stream=True)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def labs() -> AsyncGenerator[TunnelLabs]:
    async with labs_for(FIXED + STREAMS, MTU) as opened:
        yield opened


@pytest.mark.parametrize(("vpn", "suite"), FIXED)
async def test_packets_have_the_predicted_sizes(labs: TunnelLabs, vpn: str, suite: str) -> None:
    """Datagrams of sizes around blocks, around the largest that is not fragmented, and beyond it."""
    tunnel, lab = all_tunnels()[vpn], labs.lab_for(vpn, suite)
    variant = tunnel.variant(suite)
    encapsulation = tunnel.encapsulation(variant)
    assert encapsulation is not None
    wrong: list[str] = []
    for node in lab.nodes.values():
        await forget_paths(node)
    async with AsyncExitStack() as cleanup:
        established = await tunnel.up(*gateways(lab, variant.outer), variant, cleanup)
        for family in sorted(family for transport, family in tunnel.carried(variant) if transport == "udp"):
            assert await await_first_reply(lab, established, ("udp", family), 10) is not None
            wrong += [text async for text in mispredicted(lab, encapsulation, family)]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(("vpn", "suite"), STREAMS)
async def test_streams_have_the_predicted_overhead(labs: TunnelLabs, vpn: str, suite: str) -> None:
    """Between that of messages which travel alone and that of full segments, within 1 %."""
    tunnel, lab = all_tunnels()[vpn], labs.lab_for(vpn, suite)
    variant = tunnel.variant(suite)
    encapsulation = tunnel.encapsulation(variant)
    assert encapsulation is not None
    async with AsyncExitStack() as cleanup:
        established = await tunnel.up(*gateways(lab, variant.outer), variant, cleanup)
        assert await await_first_reply(lab, established, ("tcp", Family.IPV4), 10) is not None
        bench = Bench(lab, established)
        full = predict(encapsulation, bulk_payload(encapsulation, Family.IPV4, MTU), "tcp", Family.IPV4, MTU)
        bulk = await least_overhead(bench, tcp_point(), full.ratio * 1.01)
        assert full.bulk_ratio * 0.99 < bulk < full.ratio * 1.01
        if ("udp", Family.IPV4) in tunnel.carried(variant):
            alone = predict(encapsulation, 600, "udp", Family.IPV4, MTU)
            paced = await least_overhead(bench, udp_point(600), alone.ratio * 1.01)
            assert alone.bulk_ratio * 0.99 < paced < alone.ratio * 1.01


async def mispredicted(lab: Lab, encapsulation: Encapsulation, family: Family) -> AsyncGenerator[str]:
    async with AsyncExitStack() as serving:
        await serve_echoes(lab, family, serving)
        # One that may be too large tells the host of the path's MTU.
        await sent_for(lab, family, largest_unfragmented_payload(Encapsulation(), "udp", family, MTU))
        for size in sizes(encapsulation, family):
            predicted = [packet.size for packet in predict(encapsulation, size, "udp", family, MTU).packets]
            found = await sizes_on_wire(lab, family, size, predicted, encapsulation.varying)
            if not alike(found, predicted, encapsulation.varying):
                yield f"{size} bytes over {family}: {found} on the wire, predicted {predicted}"


def sizes(encapsulation: Encapsulation, family: Family) -> Iterable[int]:
    largest = largest_unfragmented_payload(encapsulation, "udp", family, MTU)
    whole = largest_unfragmented_payload(Encapsulation(), "udp", family, MTU)
    # Every remainder of a block, for one family: the padding doesn't know what is in the packet.
    small = range(64, 81) if family is Family.IPV4 else (64, 65)
    return sorted({*small, 512, *range(largest - 2, largest + 3), whole, whole + 1, 3000})


async def serve_echoes(lab: Lab, family: Family, cleanup: AsyncExitStack) -> None:
    bind = "0.0.0.0" if family is Family.IPV4 else "[::]"
    job = EchoServe(bind=f"{bind}:{SERVICE_PORT}", protocol="udp", deadline=300 * SECOND)
    serving = await lab.nodes[lab.sites[1].host].start_traffic(job, Echoed)
    cleanup.push_async_callback(serving.outcome, 10)
    cleanup.push_async_callback(serving.stop)


async def sizes_on_wire(lab: Lab, family: Family, size: int, predicted: list[int], varying: int) -> list[int]:
    """Of the packets that left the left gateway for one datagram; tried again where they differ."""
    found: list[int] = []
    for _ in range(ATTEMPTS):
        found = await sent_for(lab, family, size)
        if varying:
            found = [length for length in found if length > BARE]
        if alike(found, predicted, varying):
            break
    return found


def alike(found: list[int], predicted: list[int], varying: int) -> bool:
    return len(found) == len(predicted) and all(
        0 <= length - expected <= varying for length, expected in zip(found, predicted, strict=True)
    )


async def sent_for(lab: Lab, family: Family, size: int) -> list[int]:
    left, right = lab.sites
    wire = next(end for end in lab.topology.wire.ends if end.node == left.gateway)
    capture = await lab.nodes[left.gateway].start_capture(wire.interface, [], 100)
    address = right.inside.address(family)
    host = f"[{address}]" if family is Family.IPV6 else str(address)
    probing = await lab.nodes[left.host].start_traffic(
        EchoProbe(
            destination=UdpEcho(f"{host}:{SERVICE_PORT}"),
            plan=ProbeCount(count=1, deadline=SECOND),
            interval=0,
            payload_bytes=size,
            timeout=SECOND // 2,
            socket=SocketOptions(port=SOURCE_PORT),
        ),
        Probed,
    )
    # The first one that is too large comes back as an error.
    with contextlib.suppress(NodeError):
        await probing.outcome(5)
    report = await capture.stop()
    sizes = [
        without_acknowledgement(packet)
        for packet in report.first
        if packet.outgoing and packet.protocol.split()[:2] not in (["arp"], ["ipv6", "icmpv6"])
    ]
    return [size for size in sizes if size]


def without_acknowledgement(packet: KeptPacket) -> int:
    """Its size without what PPTP acknowledges along with it, of the other direction; 0 if that is all.

    Which packet of several does that is a matter of a few milliseconds.
    """
    header = packet.data[34:46]
    if packet.protocol != "ipv4 gre" or header[1] & 0x07 != 1:
        return packet.length
    payload, acknowledges = int.from_bytes(header[4:6]), bool(header[1] & 0x80)
    return packet.length - 4 * acknowledges if payload else 0


async def least_overhead(bench: Bench, point: Point, bound: float) -> float:
    """The least of several trials, or the first below the bound: what TCP sends again only adds to it."""
    least = math.inf
    for _ in range(ATTEMPTS):
        least = min(least, await wire_overhead(bench, point))
        if least < bound:
            break
    return least


async def wire_overhead(bench: Bench, point: Point) -> float:
    method = Method().model_copy(update={"trial": 2.0, "warm_up": 0.3, "cool_down": 0.2})
    trial = await run_trial(bench, point, 0, method)
    assert trial.status == "ok", trial.reason
    return trial.metrics["wire_overhead"]


def tcp_point() -> Point:
    return Point(
        transport="tcp", ip="ipv4", payload_bytes=131_072, rate=None, direction="forward", load="engine"
    )


def udp_point(size: int) -> Point:
    rate = parse_sending_rate("200pps")
    return Point(
        transport="udp", ip="ipv4", payload_bytes=size, rate=rate, direction="forward", load="engine"
    )
