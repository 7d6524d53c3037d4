"""UDP datagrams of 64 bytes received per second, engine and iperf3 in turn through the same plain lab.

python benchmarks/small_packets.py [REPEATS] [KIND ...]
"""

from __future__ import annotations

import asyncio
import statistics
import sys

from common import bench, spread, table

from tunnelbench.campaign.trial import run_trial
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import MAXIMUM

METHOD = Method().model_copy(update={"trial": 4.0, "warm_up": 1.0, "cool_down": 0.0})


async def main(repeats: int, kinds: list[str]) -> None:
    """Prints the table."""
    rows: list[list[str]] = []
    for kind in kinds:
        found: dict[str, list[float]] = {"engine": [], "iperf3": []}
        async with bench(kind, "open") as scene:
            for repeat in range(repeats * 2):
                load = ("engine", "iperf3")[(repeat + repeat // 2) % 2]
                trial = await run_trial(scene, point(load), repeat, METHOD)
                if trial.status == "ok":
                    found[load].append(trial.metrics["packets_per_second"])
                else:
                    print(kind, load, trial.reason, file=sys.stderr)
        ratio = statistics.median(found["engine"]) / statistics.median(found["iperf3"])
        rows.append([kind, spread(found["engine"]), spread(found["iperf3"]), f"{ratio:.1f}"])
    print(table(["lab", "engine, packets/s", "iperf3, packets/s", "ratio"], rows))


def point(load: str) -> Point:
    """As fast as possible."""
    return Point(transport="udp", ip="ipv4", payload_bytes=64, rate=MAXIMUM, direction="forward", load=load)


if __name__ == "__main__":
    asyncio.run(
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:] or ["namespaces", "four kernels"])
    )
