"""The overhead model against packets in a real lab: every VPN whose packets are described, byte by byte."""

from __future__ import annotations

import contextlib
import random
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

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
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Place, gateways
from tunnelbench.tunnels.path import SERVICE_PORT
from tunnelbench.witness.witness import await_first_reply

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

MTU = 1500
SOURCE_PORT = 40_000
SECOND = 1_000_000_000
PROBE_HEADER = 12
ETHERNET_HEADER, IPV4_HEADER, IPV6_HEADER = 14, 20, 40
TCP_HEADER = 32
"""With timestamps."""
BARE = 60
"""What a tunnel with acknowledgements sends of its own is not longer."""
ATTEMPTS = 4
"""Of what a tunnel sends by itself, some may fall between the packets that are looked at."""


PLACE = Place(DEFAULT_IMAGE, "site-to-site")
IPV4, IPV6 = Family
TRIED: list[tuple[str, str, dict[str, str], Family]] = [
    # The first and the last suite that each can have: often a classic cipher with a hash, and an AEAD.
    (name, suite, dict[str, str](), tunnel.default_outer)
    for name, tunnel in all_tunnels().items()
    if (can := [one for one in tunnel.suites if tunnel.objection(tunnel.variant(one), PLACE) is None])
    for suite in dict.fromkeys([can[0], can[-1]])
] + [
    ("fastd", "salsa2012-poly1305", {"device": "tap"}, IPV6),
    ("ipsec-manual", "aes256-sha1", {"protocol": "ah+esp"}, IPV6),
    ("ipsec-manual", "aes256-sha1", {"nat-traversal": "yes"}, IPV4),
    ("openconnect", "3des-sha1", {}, IPV6),
    ("openconnect", "aes256-sha384", {"carrier": "tls"}, IPV4),
    ("openconnect", "aes128-gcm", {"carrier": "tls"}, IPV6),
    ("openvpn", "camellia-128-cbc-md5", {"device": "tap", "carrier": "tcp"}, IPV6),
    ("softether", "chacha20-poly1305", {"udp-acceleration": "yes"}, IPV6),
    ("softether", "null", {}, IPV4),
    ("ssh-vpn", "3des-cbc-sha256", {"device": "tap", "mac-order": "encrypt-then-mac"}, IPV6),
    ("strongswan", "aes256-sha1", {"steering": "vti"}, IPV4),
]


def id_of(tried: tuple[str, str, Mapping[str, str], Family]) -> str:
    vpn, suite, levels, outer = tried
    return "-".join([vpn, suite, *levels.values(), *([outer] if outer is IPV6 else [])])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def labs() -> AsyncGenerator[TunnelLabs]:
    async with labs_for([(vpn, suite) for vpn, suite, _, _ in TRIED], MTU) as opened:
        yield opened


@pytest.mark.parametrize(("vpn", "suite", "levels", "outer"), TRIED, ids=map(id_of, TRIED))
async def test_packets_have_the_predicted_sizes(
    labs: TunnelLabs, vpn: str, suite: str, levels: Mapping[str, str], outer: Family
) -> None:
    """Datagrams of sizes around blocks, around the largest that is not fragmented, and beyond it.

    In a TCP stream, too, they have the predicted bytes; with always more to send the overhead is right
    within 1 %.
    """
    tunnel, lab = all_tunnels()[vpn], labs.lab_for(vpn, suite)
    variant = tunnel.variant(suite, levels, outer)
    encapsulation = tunnel.encapsulation(variant)
    assert encapsulation is not None
    wrong: list[str] = []
    for node in lab.nodes.values():
        await forget_paths(node)
    async with AsyncExitStack() as cleanup:
        established = await tunnel.up(*gateways(lab, variant.outer), variant, cleanup)
        for family in sorted(family for transport, family in tunnel.carried(variant) if transport == "udp"):
            assert await await_first_reply(lab, established, ("udp", family), 60) is not None
            wrong += [text async for text in mispredicted(lab, encapsulation, family, outer)]
        assert not wrong, "\n".join(wrong)
        if encapsulation.stream:
            assert await await_first_reply(lab, established, ("tcp", IPV4), 60) is not None
            full = predict(encapsulation, bulk_payload(encapsulation, IPV4, MTU), "tcp", IPV4, MTU)
            await check_stream(Bench(lab, established), full.bulk_ratio)


async def check_stream(bench: Bench, predicted: float) -> None:
    """What a stream that never pauses puts on the wire."""
    method = Method().model_copy(update={"trial": 2.0, "warm_up": 0.3, "cool_down": 0.2})
    measured: list[float] = []
    for _ in range(ATTEMPTS):
        trial = await run_trial(bench, tcp_point(), 0, method)
        assert trial.status == "ok", trial.reason
        measured.append(trial.metrics["wire_overhead"])
        if measured[-1] == pytest.approx(predicted, rel=0.01):
            return
    raise AssertionError(f"{measured} on the wire per byte, predicted {predicted:.4f}")


async def mispredicted(
    lab: Lab, encapsulation: Encapsulation, family: Family, outer: Family
) -> AsyncGenerator[str]:
    async with AsyncExitStack() as serving:
        await serve_echoes(lab, family, serving)
        # One that may be too large tells the host of the path's MTU.
        await sent_for(lab, family, largest_unfragmented_payload(Encapsulation(), "udp", family, MTU))
        for size in sizes(encapsulation, family):
            predicted = [packet.size for packet in predict(encapsulation, size, "udp", family, MTU).packets]
            expected = Expected(predicted, encapsulation.varying, encapsulation.stream, outer)
            found = await sizes_on_wire(lab, family, size, expected)
            if not expected.fits(found):
                yield f"{size} bytes over {family}: {found} on the wire, predicted {predicted}"


@dataclass(frozen=True)
class Expected:
    """What one datagram becomes on the wire."""

    sizes: list[int]
    varying: int
    """Bytes that each packet may have more."""
    stream: bool
    outer: Family

    def fits(self, found: list[int]) -> bool:
        """Whether packets of these sizes are what was expected.

        What goes into a TCP stream at once may share a segment, as TCP likes: its bytes are the same.
        """
        if self.stream:
            more = self._payload(found) - self._payload(self.sizes)
            return 0 < len(found) <= len(self.sizes) and 0 <= more <= self.varying * len(self.sizes)
        return len(found) == len(self.sizes) and all(
            0 <= length - size <= self.varying for length, size in zip(found, self.sizes, strict=True)
        )

    def _payload(self, segments: list[int]) -> int:
        header = IPV6_HEADER if self.outer is IPV6 else IPV4_HEADER
        return sum(size - ETHERNET_HEADER - header - TCP_HEADER for size in segments)


def sizes(encapsulation: Encapsulation, family: Family) -> Iterable[int]:
    largest = largest_unfragmented_payload(encapsulation, "udp", family, MTU)
    whole = largest_unfragmented_payload(Encapsulation(), "udp", family, MTU)
    # Every remainder of a block, for one family: the padding doesn't know what is in the packet.
    small = range(64, 81) if family is IPV4 else (64, 65)
    return sorted({*small, 512, *range(largest - 2, largest + 3), whole, whole + 1, 3000})


async def serve_echoes(lab: Lab, family: Family, cleanup: AsyncExitStack) -> None:
    bind = "0.0.0.0" if family is Family.IPV4 else "[::]"
    job = EchoServe(bind=f"{bind}:{SERVICE_PORT}", protocol="udp", deadline=300 * SECOND)
    serving = await lab.nodes[lab.sites[1].host].start_traffic(job, Echoed)
    cleanup.push_async_callback(serving.outcome, 10)
    cleanup.push_async_callback(serving.stop)


async def sizes_on_wire(lab: Lab, family: Family, size: int, expected: Expected) -> list[int]:
    """Of the packets that left the left gateway for one datagram; tried again where they differ."""
    found: list[int] = []
    for _ in range(ATTEMPTS):
        found = await sent_for(lab, family, size)
        if expected.varying and min(expected.sizes) > BARE:
            found = [length for length in found if length > BARE]
        if expected.fits(found):
            break
    return found


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
            # What can't be compressed isn't, or grows; never mind by which algorithm.
            marker=random.Random(size).randbytes(max(1, size - PROBE_HEADER)),
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
    if " tcp" in packet.protocol:
        return packet.length if carries_payload(packet) else 0
    header = packet.data[34:46]
    if packet.protocol != "ipv4 gre" or header[1] & 0x07 != 1:
        return packet.length
    payload, acknowledges = int.from_bytes(header[4:6]), bool(header[1] & 0x80)
    return packet.length - 4 * acknowledges if payload else 0


def carries_payload(packet: KeptPacket) -> bool:
    """Whether a TCP segment is more than an acknowledgement of the other direction."""
    start = ETHERNET_HEADER + (IPV6_HEADER if packet.protocol.startswith("ipv6") else IPV4_HEADER)
    return packet.length > start + packet.data[start + 12] // 16 * 4


def tcp_point() -> Point:
    return Point(
        transport="tcp", ip="ipv4", payload_bytes=131_072, rate=None, direction="forward", load="engine"
    )
