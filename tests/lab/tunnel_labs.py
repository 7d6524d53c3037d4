"""Labs to bring tunnels up in: gateways are where the image and this machine have what a tunnel needs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from tunnelbench.lab.image import DEFAULT_IMAGE, find
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.runtimes import Placement, place
from tunnelbench.lab.topology import TOPOLOGIES, Topology
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Tunnel, Variant

SITE_TO_SITE = TOPOLOGIES["site-to-site"]


class TunnelLabs:
    """One lab for each runtime of the gateways, and where each suite of a VPN can run."""

    def __init__(self, labs: Mapping[Runtime, Lab], placements: Mapping[tuple[str, str], Placement]) -> None:
        self.labs = labs
        self._placements = placements

    def lab_for(self, vpn: str, suite: str) -> Lab:
        """The lab where a suite can run; a test of one that can run nowhere is skipped."""
        return self.labs[_runtime(self._placements[vpn, suite])]


@asynccontextmanager
async def labs_for(suites: Iterable[tuple[str, str]], mtu: int = 1500) -> AsyncGenerator[TunnelLabs]:
    """Labs of two sites for these VPNs, each with the name of a suite."""
    image = find()
    wanted = [(all_tunnels()[vpn], suite) for vpn, suite in suites]
    placements = await place(
        image, {(tunnel.name, suite): tunnel.needs(tunnel.variant(suite)) for tunnel, suite in wanted}
    )
    async with AsyncExitStack() as cleanup:
        labs = {
            runtime: await cleanup.enter_async_context(
                Lab(LabPlan(SITE_TO_SITE, image, dict.fromkeys(SITE_TO_SITE.gateways, runtime), mtu))
            )
            for runtime in {placement.runtime for placement in placements.values()}
            if runtime is not None
        }
        yield TunnelLabs(labs, placements)


@asynccontextmanager
async def lab_for(
    tunnel: Tunnel, variant: Variant, topology: Topology = SITE_TO_SITE, image_name: str = DEFAULT_IMAGE
) -> AsyncGenerator[Lab]:
    """A lab where a variant can run; a test of one that can run nowhere is skipped."""
    image = find(image_name)
    runtime = _runtime((await place(image, {tunnel.name: tunnel.needs(variant)}))[tunnel.name])
    async with Lab(LabPlan(topology, image, dict.fromkeys(topology.gateways, runtime))) as lab:
        yield lab


def _runtime(placement: Placement) -> Runtime:
    if placement.runtime is None:
        pytest.skip(placement.reason)
    return placement.runtime
