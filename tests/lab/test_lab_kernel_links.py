from __future__ import annotations

import pytest

from tunnelbench.lab.image import find
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.topology import TOPOLOGIES, Family

pytestmark = pytest.mark.lab

SITE_TO_SITE = TOPOLOGIES["site-to-site"]
PINGS = 40


async def test_a_kernel_hears_what_comes_in_and_not_what_it_sends() -> None:
    async with Lab(
        LabPlan(SITE_TO_SITE, find(), dict.fromkeys(SITE_TO_SITE.gateways, Runtime.KERNEL))
    ) as lab:
        site = lab.sites[0]
        assert site.gateway_inside is not None
        gateway, address = lab.nodes[site.gateway], str(site.gateway_inside.address(Family.IPV4))
        before = await gateway.interfaces()
        await lab.nodes[site.host].run("ping", "-c", str(PINGS), "-i", "0.01", address)
        after = await gateway.interfaces()
        (link,) = (name for name in after if after[name].sent_packets - before[name].sent_packets >= PINGS)
        assert PINGS <= after[link].received_packets - before[link].received_packets < 1.5 * PINGS
