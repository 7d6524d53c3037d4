"""What the benchmarks share: labs with a tunnel in them, repeats, and tables in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TypeVar

from tunnelbench.campaign.trial import Bench
from tunnelbench.lab.image import find
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.topology import TOPOLOGIES, Family
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import gateways
from tunnelbench.witness.witness import await_first_reply

T = TypeVar("T")
R = TypeVar("R")

TOPOLOGY = TOPOLOGIES["site-to-site"]

KINDS: dict[str, dict[str, Runtime]] = {
    "namespaces": {},
    "kernel gateways": dict.fromkeys(TOPOLOGY.gateways, Runtime.KERNEL),
    "four kernels": dict.fromkeys(TOPOLOGY.nodes, Runtime.KERNEL),
}
"""Which nodes are kernels in each kind of lab."""


@asynccontextmanager
async def bench(kind: str, tunnel_name: str) -> AsyncGenerator[Bench]:
    """A lab of a kind with a tunnel (`VPN/SUITE`) that carries payload."""
    vpn, _, suite_name = tunnel_name.partition("/")
    tunnel = all_tunnels()[vpn]
    async with Lab(LabPlan(TOPOLOGY, find(), KINDS[kind])) as lab, AsyncExitStack() as cleanup:
        established = await tunnel.up(*gateways(lab), tunnel.variant(suite_name or "none"), cleanup)
        transport = "udp" if ("udp", Family.IPV4) in tunnel.carries else "tcp"
        assert await await_first_reply(lab, established, (transport, Family.IPV4), 15) is not None
        yield Bench(lab, established)


def spread(values: Sequence[float], digits: int = 3) -> str:
    """Median, with minimum and maximum in brackets."""
    if not values:
        return "no value"
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}g} ({low:.{digits}g} to {high:.{digits}g})"


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def interleaved(tools: Mapping[str, T], measure: Callable[[T], R], repeats: int) -> dict[str, list[R]]:
    """What every tool came to: each runs once in each round, and each round begins with another."""
    found: dict[str, list[R]] = {name: [] for name in tools}
    names = list(tools)
    for repeat in range(repeats):
        first = repeat % len(names)
        for name in names[first:] + names[:first]:
            found[name].append(measure(tools[name]))
    return found
