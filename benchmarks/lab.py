"""How long a lab takes from nothing to the first reply across all four nodes, to its end, and its memory.

python benchmarks/lab.py [REPEATS]
"""

from __future__ import annotations

import asyncio
import sys
import time

from common import KINDS, TOPOLOGY, bench, spread, table

from tunnelbench.lab.lab import Lab, Runtime
from tunnelbench.lab.node import Node


async def main(repeats: int) -> None:
    """Prints the table."""
    rows: list[list[str]] = []
    for kind in KINDS:
        ups: list[float] = []
        downs: list[float] = []
        memories: list[float] = []
        for _ in range(repeats):
            began = time.monotonic()
            async with bench(kind, "open") as scene:
                ups.append(time.monotonic() - began)
                memories += await kernel_memory(scene.lab)
                began = time.monotonic()
            downs.append(time.monotonic() - began)
        rows.append([kind, spread(ups), spread(downs), spread(memories) if memories else "none"])
    print(table(["lab", "up to first reply, s", "down, s", "resident memory of a kernel, MB"], rows))


async def kernel_memory(lab: Lab) -> list[float]:
    """Memory of each kernel with all its processes, MB: the proportional share of what they map."""
    names = [node for node in TOPOLOGY.nodes if lab.plan.runtime(node) is Runtime.KERNEL]
    return [await proportional_set(lab.accountant(name)) for name in names]


async def proportional_set(node: Node) -> float:
    """PSS of all processes on a node, MB."""
    maps = await node.run("sh", "-c", "cat /proc/[0-9]*/smaps_rollup", check=False)
    return sum(int(line.split()[1]) for line in maps.text.splitlines() if line.startswith("Pss:")) / 1000


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5))
