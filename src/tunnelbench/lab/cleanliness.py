"""Proves that a node is as it was before a tunnel came up: what is left could carry the next traffic."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from tunnelbench.lab.node import Node

_KERNEL_THREADS_PARENT = "2"
_PATIENCE_SECONDS = 2.0
_LOOK_EVERY_SECONDS = 0.05
_PLACES_OF_FILES = ("/run", "/tmp")
_NETWORK = b"link show\naddress show\nroute show table all\nrule show\nxfrm state count\nxfrm policy count\n"


@dataclass(frozen=True)
class Snapshot:
    """What a node has at one moment."""

    processes: Mapping[str, int]
    """By name."""
    network: frozenset[str]
    """Links, addresses, routes and so on, a line each."""
    files: frozenset[str] = frozenset()
    """Files and sockets that programs have while they run."""


async def snapshot(node: Node) -> Snapshot:
    """Takes the state of a node."""
    # Alone, since a program that only starts is still called as the agent that starts it.
    processes = await node.run("ps", "-e", "-o", "ppid=,comm=")
    network, files = await asyncio.gather(
        node.run("ip", "-o", "-force", "-batch", "-", check=False, input=_NETWORK),
        node.run("find", *_PLACES_OF_FILES, "(", "-type", "f", "-o", "-type", "s", ")", check=False),
    )
    names: Counter[str] = Counter()
    for line in processes.text.splitlines():
        parent, _, name = line.strip().partition(" ")
        if parent not in ("0", _KERNEL_THREADS_PARENT) and name.strip() != "ps":
            names[name.strip()] += 1
    # Link-local addresses come by themselves, a while after their links.
    lines = (_lasting(line) for line in network.text.splitlines() if "fe80:" not in line)
    return Snapshot(names, frozenset(lines), frozenset(files.text.splitlines()))


async def forget_paths(node: Node) -> None:
    """Has a node forget what it learned of paths: MTUs, and what TCP keeps of earlier connections.

    Else a tunnel with a lower MTU would have the next one's traffic cut to its measure for ten minutes.
    """
    flushes = b"route flush cache\ntcp_metrics flush\n"
    await asyncio.gather(
        node.run("ip", "-force", "-batch", "-", check=False, input=flushes),
        node.run("ip", "-6", "route", "flush", "cache", check=False),
    )


def _lasting(line: str) -> str:
    """A line without what changes by itself, such as a link's carrier."""
    before, _, link = line.partition(" link/")
    if link:
        line = f"link {before.split(':')[1]} {link}"
    return " ".join(line.split())


async def leftovers(node: Node, before: Snapshot) -> tuple[str, ...]:
    """What the node has more or less than before, after a patience of two seconds; empty when it is clean."""
    deadline = asyncio.get_running_loop().time() + _PATIENCE_SECONDS
    while True:
        now = await snapshot(node)
        changes = [f"process {name}" for name in Counter(now.processes) - Counter(before.processes)]
        changes += sorted(now.network - before.network)
        changes += [f"no longer {item}" for item in sorted(before.network - now.network)]
        changes += [f"file {path}" for path in sorted(now.files - before.files)]
        if not changes or asyncio.get_running_loop().time() > deadline:
            return tuple(f"{node.name}: {item}" for item in changes)
        await asyncio.sleep(_LOOK_EVERY_SECONDS)
