"""WireGuard's implementations in a real lab: options, IPv6 between the gateways, and new keys."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from tunnel_labs import lab_for

from tunnelbench.lab.lab import Lab
from tunnelbench.lab.topology import Family, remote_access
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import bring_up, gateways
from tunnelbench.witness.witness import await_first_reply

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

ETHERNET_IPV4_UDP = 14 + 20 + 8
INITIATION, RESPONSE, TRANSPORT = (bytes([kind, 0, 0, 0]) for kind in (1, 2, 4))
IMPLEMENTATIONS = ("wireguard", "wireguard-go", "boringtun")
VARIANTS: list[tuple[dict[str, str], Family]] = [({}, Family.IPV6), ({"preshared-key": "yes"}, Family.IPV4)]


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=IMPLEMENTATIONS)
async def bench(request: pytest.FixtureRequest) -> AsyncGenerator[tuple[str, Lab]]:
    tunnel = all_tunnels()[request.param]
    async with lab_for(tunnel, tunnel.variant("chacha20-poly1305")) as lab:
        yield request.param, lab


@pytest.mark.parametrize(("options", "outer"), VARIANTS)
async def test_a_variant_comes_up_and_says_what_it_is(
    bench: tuple[str, Lab], options: dict[str, str], outer: Family
) -> None:
    vpn, lab = bench
    variant = all_tunnels()[vpn].variant("chacha20-poly1305", options, outer)
    async with AsyncExitStack() as cleanup:
        established = await all_tunnels()[vpn].up(*gateways(lab, outer), variant, cleanup)
        for traffic in all_tunnels()[vpn].carried(variant):
            assert await await_first_reply(lab, established, traffic, 60) is not None, traffic
        read_back = await established.read_back()
        assert read_back.suite == "chacha20-poly1305"
        assert read_back.facts == established.facts
        assert established.handshake_seconds is not None
        assert 0 < established.handshake_seconds < 60


async def test_new_keys_come_when_they_are_forced(bench: tuple[str, Lab]) -> None:
    vpn, lab = bench
    tunnel = all_tunnels()[vpn]
    async with AsyncExitStack() as cleanup:
        established = await tunnel.up(*gateways(lab), tunnel.variant("chacha20-poly1305"), cleanup)
        assert established.rekey is not None
        first, second = [await sessions_seen(lab, established.rekey) for _ in range(2)]
        assert len(first) == len(second) == 2, "one session in each direction"
        assert not first & second
        assert await await_first_reply(lab, established, ("udp", Family.IPV4), 60) is not None


async def test_clients_have_their_addresses_and_reach_the_host(bench: tuple[str, Lab]) -> None:
    vpn, _ = bench
    tunnel, topology = all_tunnels()[vpn], remote_access(2)
    variant = tunnel.variant("chacha20-poly1305", {"preshared-key": "yes"})
    async with lab_for(tunnel, variant, topology) as clients, AsyncExitStack() as cleanup:
        established = await bring_up(clients, tunnel, variant, cleanup)
        for _ in range(2):
            for site in topology.clients:
                for family in Family:
                    host = str(topology.server.inside.address(family))
                    seen = await clients.nodes[site.host].run("ip", "route", "get", host)
                    assert " dev wg0 " in seen.text
                    assert f" src {site.inside.address(family)} " in seen.text
                    await clients.nodes[site.host].run("ping", "-c1", "-w30", host)
            assert (await established.read_back()).suite == "chacha20-poly1305"
            assert (await established.read_back()).facts == {"preshared key": "yes"}
            assert established.rekey is not None
            await established.rekey()


async def sessions_seen(lab: Lab, action: Callable[[], Awaitable[None]]) -> set[bytes]:
    """The numbers of the sessions to which packets belonged that crossed the wire meanwhile."""
    left = gateways(lab)[0]
    capture = await left.node.start_capture("wan", keep=100)
    await action()
    report = await capture.stop()
    payloads = [packet.data[ETHERNET_IPV4_UDP:] for packet in report.first if "udp" in packet.protocol]
    assert {payload[:4] for payload in payloads} == {INITIATION, RESPONSE, TRANSPORT}
    return {payload[4:8] for payload in payloads if payload[:4] == TRANSPORT}
