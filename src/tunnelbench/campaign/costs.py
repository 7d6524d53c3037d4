"""What traffic cost: processor time of every node, and bytes on the wire."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass

from tunnelbench.lab.lab import Lab, Runtime
from tunnelbench.lab.messages import Counters
from tunnelbench.lab.topology import LinkEnd
from tunnelbench.study.vocabulary import Direction

MACHINE = "machine"
"""The name under which the kernel that all namespaces share is accounted, softirq included."""

_SECOND = 1_000_000_000


Accounts = Mapping[str, Counters]
"""The counters of every node, or of the hull of one that is a kernel: all that it costs this machine."""

NodeCosts = Mapping[str, Mapping[str, float]]
"""Node to field to seconds per second, or to switches per second."""


async def read_accounts(lab: Lab) -> Accounts:
    """Reads all nodes at once."""
    names = list(lab.nodes)
    accounts = await asyncio.gather(*(lab.accountant(name).counters() for name in names))
    return dict(zip(names, accounts, strict=True))


def node_costs(lab: Lab, before: Accounts, after: Accounts) -> NodeCosts:
    """The costs of the time between two readings."""
    nodes: dict[str, Mapping[str, float]] = {}
    for name, first in before.items():
        last = after[name]
        seconds = (last.clock - first.clock) / _SECOND
        used = last.processes.user - first.processes.user + last.processes.system - first.processes.system
        # What a kernel does within itself is not what its process does on this machine.
        within = _within(first, last, seconds) if lab.plan.runtime(name) is Runtime.NAMESPACE else {}
        nodes[name] = {**within, **_queued(first, last, seconds), "total": used / seconds}
    nodes[MACHINE] = _machine(next(iter(before.values())), next(iter(after.values())))
    return nodes


@dataclass(frozen=True)
class WireCount:
    """What has left the sending sites' gateways on the wire since the lab was built."""

    bytes: int
    """Ethernet headers included."""
    packets: int


async def count_wire(lab: Lab, direction: Direction | None) -> WireCount:
    """Asks the end of the wire that sends payload: both of them where it has no one direction."""
    wire = lab.topology.wire
    senders = {"forward": (wire.left,), "reverse": (wire.right,)}.get(direction or "both", wire.ends)
    counts = [await _count_sent(lab, end) for end in senders]
    return WireCount(sum(count.bytes for count in counts), sum(count.packets for count in counts))


async def _count_sent(lab: Lab, end: LinkEnd) -> WireCount:
    counters = (await lab.nodes[end.node].interfaces())[end.interface]
    return WireCount(counters.sent_bytes, counters.sent_packets)


def _within(before: Counters, after: Counters, seconds: float) -> dict[str, float]:
    first, last = before.processes, after.processes
    # A thread that ended in between takes its switches with it.
    voluntary = max(0, last.voluntary_switches - first.voluntary_switches)
    involuntary = max(0, last.involuntary_switches - first.involuntary_switches)
    return {
        "user": (last.user - first.user) / seconds,
        "system": (last.system - first.system) / seconds,
        "voluntary_switches": voluntary / seconds,
        "involuntary_switches": involuntary / seconds,
    }


def _queued(before: Counters, after: Counters, seconds: float) -> dict[str, float]:
    first, last = before.processes.queued, after.processes.queued
    # A thread that ended in between takes its wait with it.
    return {} if first is None or last is None else {"queued": max(0.0, last - first) / seconds}


def _machine(before: Counters, after: Counters) -> dict[str, float]:
    """Its parts as the kernel samples them at its ticks, and in all what was not idle, which it measures."""
    seconds = (after.clock - before.clock) / _SECOND

    def spent(name: str) -> float:
        return (getattr(after.kernel, name) - getattr(before.kernel, name)) / seconds

    parts = {name: spent(name) for name in ("user", "system", "softirq")}
    processors = os.cpu_count() or 1
    return {**parts, "total": max(0.0, processors - spent("idle") - spent("stolen"))}
