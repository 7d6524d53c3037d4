"""SSH in a real lab: what both implementations of the server carry, new keys, and trials through a proxy."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio

from tunnelbench.campaign.trial import Bench, run_trial
from tunnelbench.lab.image import find
from tunnelbench.lab.lab import Lab, LabPlan
from tunnelbench.lab.topology import TOPOLOGIES, Family
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import gateways
from tunnelbench.witness.witness import await_first_reply, examine

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

ANY_TCP = {"load": "engine", "rate": None, "direction": None}
COMPRESSED_THEN_MAC = {"compression": "zlib", "mac-order": "encrypt-then-mac"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab() -> AsyncGenerator[Lab]:
    async with Lab(LabPlan(TOPOLOGIES["site-to-site"], find())) as lab:
        yield lab


@pytest.mark.parametrize(
    ("vpn", "suite", "levels", "outer", "server"),
    [
        ("ssh-vpn", "3des-cbc-sha512", {"device": "tap", **COMPRESSED_THEN_MAC}, Family.IPV6, "OpenSSH"),
        ("ssh-vpn", "aes192-ctr-md5", {}, Family.IPV4, "OpenSSH"),
        ("ssh-socks", "blowfish-cbc-sha256", COMPRESSED_THEN_MAC, Family.IPV6, "AsyncSSH"),
        ("ssh-port-forwarding", "arcfour-md5", {}, Family.IPV4, "AsyncSSH"),
    ],
)
async def test_a_variant_is_proven_and_goes_on_with_new_keys(
    lab: Lab, vpn: str, suite: str, levels: Mapping[str, str], outer: Family, server: str
) -> None:
    tunnel = all_tunnels()[vpn]
    variant = tunnel.variant(suite, levels, outer)
    async with AsyncExitStack() as cleanup:
        established = await tunnel.up(*gateways(lab, outer), variant, cleanup)
        assert await await_first_reply(lab, established, ("tcp", Family.IPV4), 60) is not None
        verdict = await examine(lab, established, variant.suite, tunnel.carried(variant))
        assert verdict.refusal is None
        assert f"{outer.value} tcp 22" in verdict.evidence.packets
        assert (await established.read_back()).facts["server"].startswith(server)
        assert established.handshake_seconds
        assert established.rekey
        for _ in range(2):
            await established.rekey()
            assert (await established.read_back()).suite == suite
        assert await await_first_reply(lab, established, ("tcp", Family.IPV6), 60) is not None


async def test_new_keys_are_seen_after_more_datagrams_than_a_channel_carries(lab: Lab) -> None:
    tunnel = all_tunnels()["ssh-vpn"]
    method = Method.model_validate({"trial": "2 s", "warm_up": "200 ms", "cool_down": "100 ms"})
    flood = {
        "transport": "udp",
        "ip": "ipv4",
        "payload_bytes": 64,
        "rate": "1 Gbit/s",
        "direction": "forward",
    }
    async with AsyncExitStack() as cleanup:
        established = await tunnel.up(*gateways(lab), tunnel.variant("aes256-ctr-sha512"), cleanup)
        trial = await run_trial(
            Bench(lab, established), Point.model_validate({**ANY_TCP, **flood}), 0, method
        )
        assert trial.status != "ok" or trial.metrics["loss"] > 0.01
        assert await await_first_reply(lab, established, ("tcp", Family.IPV4), 60) is not None
        assert all(len(program.stderr) < 1 << 14 for program in established.programs)
        assert established.rekey
        await established.rekey()
        assert (await established.read_back()).suite == "aes256-ctr-sha512"


async def test_trials_go_through_a_socks_proxy_and_cross_the_wire(lab: Lab) -> None:
    tunnel = all_tunnels()["ssh-socks"]
    method = Method.model_validate({"trial": "1.5 s", "warm_up": "200 ms", "cool_down": "100 ms"})
    stream = {"transport": "tcp", "ip": "ipv6", "payload_bytes": 8192, "direction": "both", "streams": 2}
    requests = {"transport": "tcp", "ip": "ipv4", "payload_bytes": 100, "profile": "request-response"}
    async with AsyncExitStack() as cleanup:
        established = await tunnel.up(*gateways(lab), tunnel.variant("aes128-gcm"), cleanup)
        for point in (stream, requests, {**requests, "profile": "connect-request-response"}):
            trial = await run_trial(
                Bench(lab, established),
                Point.model_validate({**ANY_TCP, **point}),
                0,
                method,
            )
            assert trial.status == "ok", trial.reason
            assert trial.metrics["wire_overhead"] > 1
