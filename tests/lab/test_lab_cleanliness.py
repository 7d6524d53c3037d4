"""What nodes learn of a tunnel's path is forgotten before the next tunnel."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest

from tunnelbench.lab.cleanliness import forget_paths
from tunnelbench.lab.image import find
from tunnelbench.lab.lab import Lab, LabPlan
from tunnelbench.lab.topology import TOPOLOGIES, Family
from tunnelbench.tunnels.base import gateways
from tunnelbench.tunnels.plain import TUNNEL

pytestmark = pytest.mark.lab


@pytest.mark.parametrize("family", Family)
async def test_a_lower_mtu_is_forgotten(family: Family) -> None:
    async with Lab(LabPlan(TOPOLOGIES["site-to-site"], find())) as lab, AsyncExitStack() as cleanup:
        await TUNNEL.up(*gateways(lab), TUNNEL.variant("none"), cleanup)
        host, server = lab.nodes["host1"], str(lab.sites[1].inside.address(family))

        async def path_mtu() -> str:
            return (await host.run("ip", "route", "get", server)).text

        await lab.nodes["gw1"].run("ip", "link", "set", "wan", "mtu", "1300")
        await host.run("ping", "-c", "1", "-W", "30", "-M", "do", "-s", "1400", server, check=False)
        assert " mtu 1300" in await path_mtu()
        await forget_paths(host)
        assert " mtu " not in await path_mtu()
