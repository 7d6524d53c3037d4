"""The labs of a campaign: built when first needed, used again as long as they are clean and all goes well."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType

from tunnelbench.campaign.systems import images_by_node
from tunnelbench.lab.cleanliness import Snapshot, forget_paths, leftovers, snapshot
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.shaping import Shaping
from tunnelbench.lab.topology import topology_of, with_wifi
from tunnelbench.lab.wifi import Wifi
from tunnelbench.study.treatment import Treatment

_MOST_OPEN = 6
"""So many that a study of two systems for gateways and as many for hosts builds none of them twice."""


@dataclass(frozen=True)
class LabKey:
    """What makes two instances able to share a lab."""

    runtime: Runtime
    clients: int
    gateway_os: str
    host_os: str
    mtu: int

    @classmethod
    def of(cls, treatment: Treatment, runtime: Runtime) -> LabKey:
        """The key of the lab that a treatment needs."""
        return cls(runtime, treatment.clients, treatment.gateway_os, treatment.host_os, treatment.mtu)


class Labs:
    """Open labs by key; use it as an asynchronous context manager."""

    def __init__(
        self,
        topology: str,
        wire: Shaping,
        hosts: Shaping,
        images: Mapping[str, Image],
        wifi: Wifi | None = None,
    ) -> None:
        """Labs of one topology, kind of wire, and kind of links of hosts, with a hop of Wi-Fi or none."""
        self._topology = topology
        self._wire = wire
        self._hosts = hosts
        self._images = images
        self._wifi = wifi
        self._open: dict[LabKey, tuple[Lab, dict[str, Snapshot]]] = {}

    async def __aenter__(self) -> Labs:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.gather(*(lab.close() for lab, _ in self._open.values()))

    async def get(self, key: LabKey) -> Lab:
        """A clean lab, built if there is none; raises UserError when it cannot be built."""
        if key in self._open:
            # The one used last is the last to go.
            self._open[key] = self._open.pop(key)
            return self._open[key][0]
        while len(self._open) >= _MOST_OPEN:
            await self.discard(next(iter(self._open)))
        topology = topology_of(self._topology, key.clients)
        if self._wifi is not None:
            topology = with_wifi(topology)
        gateways = dict.fromkeys(topology.gateways, key.runtime)
        images = images_by_node(topology, key.gateway_os, key.host_os, self._images)
        plan = LabPlan(topology, images, gateways, key.mtu, self._wire, self._hosts, self._wifi)
        lab = await Lab(plan).__aenter__()
        snapshots = await asyncio.gather(*(snapshot(node) for node in lab.nodes.values()))
        self._open[key] = (lab, dict(zip(lab.nodes, snapshots, strict=True)))
        return lab

    def has(self, key: LabKey) -> bool:
        """Whether there is such a lab at the moment."""
        return key in self._open

    async def discard(self, key: LabKey) -> None:
        """Closes a lab, so that the next instance gets a new one."""
        lab, _ = self._open.pop(key)
        await lab.close()

    async def settle(self, key: LabKey) -> tuple[str, ...]:
        """Proves a lab clean after an instance, and discards it where it is not; says what was left over."""
        lab, before = self._open[key]
        try:
            await asyncio.gather(*map(forget_paths, lab.nodes.values()))
            found = await asyncio.gather(*(leftovers(node, before[name]) for name, node in lab.nodes.items()))
        except NodeError as error:
            await self.discard(key)
            return (str(error),)
        more = tuple(item for items in found for item in items)
        if more:
            await self.discard(key)
        return more
