"""The kernel's IPsec in real labs: what its options change is proven on the wire and read back."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack

import pytest
import pytest_asyncio
from tunnel_labs import lab_for

from tunnelbench.lab.cleanliness import leftovers, snapshot
from tunnelbench.lab.lab import Lab
from tunnelbench.lab.topology import TOPOLOGIES, Family
from tunnelbench.tunnels import gre_over_ipsec, ipsec_manual
from tunnelbench.tunnels.base import Tunnel, gateways
from tunnelbench.witness.witness import await_first_reply, examine

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

MANUAL, GRE = ipsec_manual.TUNNEL, gre_over_ipsec.TUNNEL
TRIED: list[tuple[str, Tunnel, str, Mapping[str, str], Family]] = [
    ("site-to-site", MANUAL, "null-sha1", {"protocol": "ah"}, Family.IPV6),
    ("site-to-site", MANUAL, "aes128-sha1", {"protocol": "ah+esp"}, Family.IPV4),
    ("site-to-site", MANUAL, "aes128-sha1", {"compression": "deflate"}, Family.IPV4),
    ("site-to-site", MANUAL, "aes128-gcm", {"nat-traversal": "yes"}, Family.IPV6),
    ("site-to-site", GRE, "aes128-sha1", {"mode": "tunnel"}, Family.IPV6),
    ("host-to-host", MANUAL, "3des-md5", {"mode": "transport", "protocol": "ah+esp"}, Family.IPV4),
    ("host-to-host", MANUAL, "aes128-gcm", {"mode": "transport", "nat-traversal": "yes"}, Family.IPV4),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def lab(request: pytest.FixtureRequest) -> AsyncGenerator[Lab]:
    """Of the topology asked for, with gateways where the kernel has IPsec."""
    async with lab_for(MANUAL, MANUAL.variant("aes128-sha1"), TOPOLOGIES[request.param]) as made:
        yield made


@pytest.mark.parametrize(
    ("lab", "tunnel", "suite", "levels", "outer"), TRIED, indirect=["lab"], scope="module"
)
async def test_options_are_proven_and_read_back(
    lab: Lab, tunnel: Tunnel, suite: str, levels: Mapping[str, str], outer: Family
) -> None:
    variant = tunnel.variant(suite, levels, outer)
    ends = gateways(lab, outer)
    before = [await snapshot(end.node) for end in ends]
    async with AsyncExitStack() as cleanup:
        established = await tunnel.up(*ends, variant, cleanup)
        for family in Family:
            assert await await_first_reply(lab, established, ("udp", family), 60) is not None
        verdict = await examine(lab, established, variant.suite, tunnel.carried(variant))
        assert verdict.refusal is None
        assert (await established.read_back()).facts == established.facts
    for end, its_state in zip(ends, before, strict=True):
        assert await leftovers(end.node, its_state) == ()
