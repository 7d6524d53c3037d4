"""OpenVPN's options in a real lab: what each changes on the wire and in what is read back."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from itertools import product

import pytest
import pytest_asyncio
from tunnel_labs import lab_for

from tunnelbench.lab.lab import Lab
from tunnelbench.lab.topology import Family, topology_of
from tunnelbench.overhead.model import predict
from tunnelbench.tunnels.base import Established, Variant, gateways, remote_gateways
from tunnelbench.tunnels.openvpn import TUNNEL
from tunnelbench.witness.witness import await_first_reply

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

Levels = Mapping[str, str]

VARIANTS: list[tuple[str, Levels, Family]] = [
    ("aes-128-cbc-sha1", {"keying": "static", "device": "tap"}, Family.IPV4),
    ("bf-cbc-md5", {"carrier": "tcp", "compression": "lzo"}, Family.IPV6),
    ("aes-256-gcm", {"device": "tap", "compression": "lz4"}, Family.IPV6),
    ("none-sha512", {"keying": "static", "carrier": "tcp"}, Family.IPV4),
    ("chacha20-poly1305", {"renegotiation": "by-volume"}, Family.IPV6),
]
SIZED: list[tuple[str, Levels, Family]] = [
    ("cast5-cbc-sha512", {"keying": "static"}, Family.IPV4),
    ("camellia-256-cbc-md5", {"device": "tap"}, Family.IPV6),
    ("none-sha256", {}, Family.IPV4),
    ("aes-192-gcm", {"device": "tap"}, Family.IPV4),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab() -> AsyncGenerator[Lab]:
    async with lab_for(TUNNEL, TUNNEL.variant("aes-128-gcm")) as made:
        yield made


async def up(lab: Lab, variant: Variant, cleanup: AsyncExitStack) -> Established:
    established = await TUNNEL.up(*gateways(lab, variant.outer), variant, cleanup)
    for family in Family:
        assert await await_first_reply(lab, established, ("udp", family), 60) is not None
    return established


@pytest.mark.parametrize(("suite", "levels", "outer"), VARIANTS)
async def test_options_are_what_is_read_back(lab: Lab, suite: str, levels: Levels, outer: Family) -> None:
    variant = TUNNEL.variant(suite, levels, outer)
    async with AsyncExitStack() as cleanup:
        established = await up(lab, variant, cleanup)
        read_back = await established.read_back()
        assert read_back.suite == suite
        assert established.facts.items() <= read_back.facts.items()
        assert established.facts["device"] == variant["device"]
        if variant["keying"] == "tls":
            assert established.handshake_seconds is not None
            assert 0.0005 < established.handshake_seconds < 60
            assert read_back.facts["TLS version"] == "TLSv1.3"


@pytest.mark.parametrize(("suite", "levels", "outer"), SIZED)
async def test_packets_have_the_predicted_sizes(lab: Lab, suite: str, levels: Levels, outer: Family) -> None:
    variant = TUNNEL.variant(suite, levels, outer)
    encapsulation = TUNNEL.encapsulation(variant)
    async with AsyncExitStack() as cleanup:
        await up(lab, variant, cleanup)
        for size in (*range(48, 65), 1000, 1472, 3000):
            predicted = [packet.size for packet in predict(encapsulation, size, "icmp", Family.IPV4).packets]
            missing = Counter(predicted) - Counter(await wire_sizes(lab, size))
            assert not missing, f"{size} bytes: {missing} of {predicted}"


@pytest.mark.parametrize("compression", ["lzo", "lz4"])
async def test_payload_that_repeats_itself_shrinks(lab: Lab, compression: str) -> None:
    variant = TUNNEL.variant("aes-128-cbc-sha1", {"compression": compression})
    async with AsyncExitStack() as cleanup:
        assert (await up(lab, variant, cleanup)).compresses
        assert max(await wire_sizes(lab, 1000)) < 250


async def test_new_keys_are_used_on_the_wire(lab: Lab) -> None:
    """The low bits of a packet's first byte number its keys."""
    variant = TUNNEL.variant("bf-cbc-sha1")
    async with AsyncExitStack() as cleanup:
        established = await up(lab, variant, cleanup)
        assert established.rekey is not None
        assert await first_bytes(lab, variant) == {0x48}
        await established.rekey()
        assert await first_bytes(lab, variant) == {0x49}
        assert (await established.read_back()).suite == "bf-cbc-sha1"


async def test_a_static_key_is_never_new(lab: Lab) -> None:
    async with AsyncExitStack() as cleanup:
        established = await up(lab, TUNNEL.variant("bf-cbc-sha1", {"keying": "static"}), cleanup)
        assert established.rekey is None
        assert established.handshake_seconds is None


async def test_the_kernel_encrypts_where_it_can() -> None:
    variant = TUNNEL.variant("aes-128-gcm", {"offload": "yes"})
    async with lab_for(TUNNEL, variant) as lab, AsyncExitStack() as cleanup:
        established = await up(lab, variant, cleanup)
        read_back = await established.read_back()
        assert read_back.suite == "aes-128-gcm"
        assert read_back.facts["offload"] == "yes"
        predicted = [p.size for p in predict(TUNNEL.encapsulation(variant), 64, "icmp", Family.IPV4).packets]
        assert not Counter(predicted) - Counter(await wire_sizes(lab, 64))


@pytest.mark.parametrize(
    ("suite", "levels", "outer"),
    [
        ("aes-128-gcm", {}, Family.IPV4),
        ("none-md5", {"carrier": "tcp", "device": "tap", "compression": "lzo"}, Family.IPV6),
    ],
)
async def test_clients_get_the_addresses_of_their_sites(suite: str, levels: Levels, outer: Family) -> None:
    topology, variant = topology_of("remote-access", 2), TUNNEL.variant(suite, levels, outer)
    async with lab_for(TUNNEL, variant, topology) as lab, AsyncExitStack() as cleanup:
        established = await TUNNEL.serve(*remote_gateways(lab, outer), variant, cleanup)
        for family, client in product(Family, topology.clients):
            address = str(client.inside.address(family))
            await lab.nodes[topology.server.host].run("ping", "-c", "1", "-W", "30", address)
        read_back = await established.read_back()
        assert read_back.suite == suite
        assert established.facts.items() <= read_back.facts.items()
        assert read_back.text.count("Outgoing Data Channel") == 4


async def wire_sizes(lab: Lab, size: int) -> list[int]:
    return [len(frame) for frame in await frames(lab, size)]


async def first_bytes(lab: Lab, variant: Variant) -> set[int]:
    """Of the packets with the echo request; what is still on its way may fill a capture or two before."""
    (packet,) = predict(TUNNEL.encapsulation(variant), 500, "icmp", Family.IPV4).packets
    found: set[int] = set()
    for _ in range(10):
        found = {frame[14 + 20 + 8] for frame in await frames(lab, 500) if len(frame) == packet.size}
        if found:
            break
    return found


async def frames(lab: Lab, size: int) -> list[bytes]:
    """What left the left gateway for one echo request of host1."""
    left, right = lab.sites
    wire = next(end for end in lab.topology.wire.ends if end.node == left.gateway)
    capture = await lab.nodes[left.gateway].start_capture(wire.interface, [], 100)
    await lab.nodes[left.host].run(
        *("ping", "-c", "1", "-W", "30", "-M", "dont", "-s", str(size), "-p", "00"),
        str(right.inside.address(Family.IPV4)),
    )
    report = await capture.stop()
    return [packet.data for packet in report.first if packet.outgoing and "udp" in packet.protocol]
