"""What a stretch of traffic cost: processor time of every node, and bytes on the wire."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from tunnelbench.lab.lab import Lab, Runtime
from tunnelbench.lab.messages import Counters

MACHINE = "machine"
"""The name under which the kernel that all namespaces share is accounted, softirq included."""

_SECOND = 1_000_000_000


@dataclass(frozen=True)
class Reading:
    """The counters of every node at one moment."""

    accountants: Mapping[str, Counters]
    """Of the node, or of the hull of a node that is a kernel: all that it costs this machine."""
    wire: Counters
    """Of the gateway at whose end of the wire packets are counted, as its own kernel counts them."""


@dataclass(frozen=True)
class Costs:
    """What happened between two readings, per second."""

    nodes: Mapping[str, Mapping[str, float]]
    """Node to field to processor seconds per second."""
    wire_bytes: float
    """Bytes per second that left on the wire in the direction of the payload, Ethernet headers included."""
    wire_packets: float
    """Packets per second, likewise."""


async def read(lab: Lab) -> Reading:
    """Reads all nodes at once."""
    names = list(lab.nodes)
    accounts, wire = await asyncio.gather(
        asyncio.gather(*(lab.accountant(name).counters() for name in names)),
        lab.nodes[lab.sites[0].gateway].counters(),
    )
    return Reading(dict(zip(names, accounts, strict=True)), wire)


def costs_between(lab: Lab, before: Reading, after: Reading, *, forward: bool) -> Costs:
    """The costs of the time between two readings; `forward` is traffic from the first site to the second."""
    nodes: dict[str, Mapping[str, float]] = {}
    for name, first in before.accountants.items():
        last = after.accountants[name]
        seconds = (last.clock - first.clock) / _SECOND
        user = (last.processes.user - first.processes.user) / seconds
        system = (last.processes.system - first.processes.system) / seconds
        # A kernel's own split between user and system is not that of its process on this machine.
        split = {"user": user, "system": system} if lab.plan.runtime(name) is Runtime.NAMESPACE else {}
        nodes[name] = {**split, "total": user + system}
    nodes[MACHINE] = _machine(next(iter(before.accountants.values())), next(iter(after.accountants.values())))

    interface = next(end.interface for end in lab.topology.wire.ends if end.node == lab.sites[0].gateway)
    first, last = before.wire.interfaces[interface], after.wire.interfaces[interface]
    seconds = (after.wire.clock - before.wire.clock) / _SECOND
    if forward:
        counted = (last.sent_bytes - first.sent_bytes, last.sent_packets - first.sent_packets)
    else:
        counted = (last.received_bytes - first.received_bytes, last.received_packets - first.received_packets)
    return Costs(nodes, counted[0] / seconds, counted[1] / seconds)


def _machine(before: Counters, after: Counters) -> dict[str, float]:
    seconds = (after.clock - before.clock) / _SECOND
    fields = {
        name: (getattr(after.kernel, name) - getattr(before.kernel, name)) / seconds
        for name in ("user", "system", "softirq")
    }
    return {**fields, "total": sum(fields.values())}
