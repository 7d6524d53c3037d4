"""The witness against real tunnels: it believes in good ones, and refuses what was tampered with."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import pytest
from tunnel_labs import SITE_TO_SITE, lab_for

from tunnelbench.lab.cleanliness import leftovers, snapshot
from tunnelbench.lab.image import find
from tunnelbench.lab.lab import Lab, LabPlan
from tunnelbench.lab.messages import AddRoute
from tunnelbench.lab.topology import Family
from tunnelbench.lab.traffic import (
    Constant,
    PacketsPerSecond,
    PerPacket,
    Schedule,
    UdpSend,
    UdpSent,
    Zeros,
)
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Established, Suite, Tunnel, Variant, gateways
from tunnelbench.tunnels.path import SERVICE_PORT
from tunnelbench.witness.evidence import Verdict
from tunnelbench.witness.witness import await_first_reply, examine

pytestmark = pytest.mark.lab


@dataclass(frozen=True)
class Scene:
    lab: Lab
    tunnel: Tunnel
    variant: Variant
    established: Established

    async def verdict(self, suite: Suite | None = None, *, seconds: float = 30) -> Verdict:
        return await examine(
            self.lab,
            self.established,
            suite or self.variant.suite,
            self.tunnel.carried(self.variant),
            seconds=seconds,
        )


@asynccontextmanager
async def scene(name: str, suite_name: str) -> AsyncGenerator[Scene]:
    """A tunnel that is up, in a lab of its own."""
    tunnel = all_tunnels()[name]
    variant = tunnel.variant(suite_name)
    async with lab_for(tunnel, variant) as lab, AsyncExitStack() as cleanup:
        established = await tunnel.up(*gateways(lab), variant, cleanup)
        assert await await_first_reply(lab, established, ("udp", Family.IPV4), 60) is not None
        yield Scene(lab, tunnel, variant, established)


async def test_a_good_tunnel_is_proven_again_and_again() -> None:
    async with scene("openvpn", "aes-128-gcm") as openvpn:
        for _ in range(2):
            verdict = await openvpn.verdict()
            assert verdict.proven, verdict.refusal
            assert verdict.evidence.packets["ipv4 udp 1194"] > 0


async def test_a_reply_comes_although_another_load_is_still_arriving() -> None:
    async with scene("openvpn", "aes-128-gcm") as openvpn:
        lab = openvpn.lab
        left = lab.nodes[lab.topology.clients[0].host]
        start = await left.clock()
        load = UdpSend(
            destination=f"{lab.topology.server.inside.address(Family.IPV4)}:{SERVICE_PORT}",
            session=1,
            schedule=Schedule(start, warm_up=0, measure=2_000_000_000, cool_down=0),
            departures=PacketsPerSecond(1000),
            sizes=Constant(100),
            mode=PerPacket(),
            content=Zeros(),
        )
        sending = await left.start_traffic(load, UdpSent)
        assert await await_first_reply(lab, openvpn.established, ("udp", Family.IPV4), 10) is not None
        assert (await sending.outcome(5)).measured.packets


async def test_traffic_that_goes_around_the_tunnel_is_refused() -> None:
    async with scene("openvpn", "aes-128-gcm") as openvpn:
        for site, peer in (openvpn.lab.sites, openvpn.lab.sites[::-1]):
            await openvpn.lab.nodes[site.gateway].configure(
                *(
                    AddRoute(str(peer.inside.network(family)), gateway=str(peer.outside.address(family)))
                    for family in Family
                )
            )
        refusal = str((await openvpn.verdict()).refusal)
    assert "crossed the wire beside the tunnel" in refusal
    assert "ipv4 udp 5201" in refusal


async def test_one_direction_around_the_tunnel_is_refused() -> None:
    async with scene("ipsec-manual", "aes128-sha1") as esp:
        await esp.lab.nodes["gw2"].run("ip", "xfrm", "policy", "flush")
        await esp.lab.nodes["gw1"].run("ip", "xfrm", "policy", "flush", "dir", "in", check=False)
        # Nothing comes back, however long it is waited for.
        verdict = await esp.verdict(seconds=1)
    assert not verdict.proven


async def test_a_wrong_key_on_one_side_is_refused() -> None:
    async with scene("ipsec-manual", "aes128-sha1") as esp:
        gateway = esp.lab.nodes["gw2"]
        states = (await gateway.run("ip", "xfrm", "state", "list")).text
        spoiled = [
            "xfrm state add " + " ".join(re.sub(r"anti-replay.*", "", state, flags=re.S).split())
            for state in re.split(r"^(?=src )", states, flags=re.M)
            if state
        ]
        batch = "\n".join(
            [
                "xfrm state flush",
                *(
                    re.sub(r"enc cbc\(aes\) 0x\w+", f"enc cbc(aes) 0x{secrets.token_hex(16)}", line)
                    for line in spoiled
                ),
            ]
        )
        await gateway.run("ip", "-batch", "-", input=batch.encode())
        refusal = str((await esp.verdict(seconds=1)).refusal)
    assert "probes came back through the tunnel" in refusal


async def test_another_suite_than_the_one_asked_for_is_refused() -> None:
    async with scene("openvpn", "aes-128-gcm") as openvpn:
        asked = openvpn.tunnel.suites["aes-256-gcm"]
        refusal = str((await openvpn.verdict(asked)).refusal)
    assert "suite aes-256-gcm was asked for, but the tunnel says that it uses aes-128-gcm" in refusal


async def test_a_suite_that_does_not_encrypt_is_refused_where_one_was_asked_for() -> None:
    async with scene("ipsec-manual", "null-sha1") as esp:
        refusal = str((await esp.verdict(esp.tunnel.suites["aes128-sha1"])).refusal)
    assert "could be read" in refusal


async def test_a_tunnel_left_over_from_before_that_still_carries_the_traffic_is_refused() -> None:
    async with scene("openvpn", "aes-128-gcm") as openvpn, AsyncExitStack() as cleanup:
        wireguard = all_tunnels()["wireguard-go"]
        variant = wireguard.variant("chacha20-poly1305")
        left, right = gateways(openvpn.lab)
        established = await wireguard.up(left, right, variant, cleanup)
        for end in (left, right):
            await end.route_to_peer(cleanup, interface="tun0")
        verdict = await examine(
            openvpn.lab, established, variant.suite, wireguard.carried(variant), seconds=30
        )
    assert "ipv4 udp 1194 crossed the wire beside the tunnel" in str(verdict.refusal)


async def test_a_tunnel_left_over_is_found() -> None:
    async with Lab(LabPlan(SITE_TO_SITE, find())) as lab:
        node = lab.nodes["gw1"]
        before = await snapshot(node)
        assert await leftovers(node, before) == ()
        program = await node.spawn("sleep", "60")
        await node.run("ip", "link", "add", "left0", "type", "veth", "peer", "name", "left1")
        found = await leftovers(node, before)
        assert any("process sleep" in item for item in found)
        assert any("left0" in item for item in found)
        await program.stop()
        await node.run("ip", "link", "del", "left0")
        assert await leftovers(node, before) == ()
        await asyncio.gather(*(lab.nodes[name].identify() for name in lab.nodes))
