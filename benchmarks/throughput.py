"""TCP throughput of tunnels, engine and iperf3 in turn through the same tunnel.

python benchmarks/throughput.py [REPEATS] [KIND:VPN/SUITE ...]
"""

from __future__ import annotations

import asyncio
import statistics
import sys

from common import bench, spread, table

from tunnelbench.campaign.trial import run_trial
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point

USUAL = (
    "namespaces:open",
    "kernel gateways:open",
    "kernel gateways:ipip",
    "kernel gateways:ipsec-manual/aes128-sha1",
    "kernel gateways:ipsec-manual/3des-sha1",
    "namespaces:openvpn/aes-128-cbc-sha1",
    "namespaces:wireguard-go/chacha20-poly1305",
)
METHOD = Method().model_copy(update={"trial": 5.0, "warm_up": 1.0, "cool_down": 0.0})


async def main(repeats: int, places: list[str]) -> None:
    """Prints the table."""
    rows: list[list[str]] = []
    for place in places:
        kind, _, tunnel = place.partition(":")
        found: dict[str, list[float]] = {"engine": [], "iperf3": []}
        async with bench(kind, tunnel) as scene:
            for repeat in range(repeats * 2):
                load = ("engine", "iperf3")[(repeat + repeat // 2) % 2]
                trial = await run_trial(scene, point(load), repeat, METHOD)
                found[load] += [trial.metrics["throughput"]] if trial.status == "ok" else []
        ratio = statistics.median(found["engine"]) / statistics.median(found["iperf3"])
        rows.append([kind, tunnel, spread(found["engine"]), spread(found["iperf3"]), f"{ratio:.2f}"])
        print(rows[-1], file=sys.stderr)
    print(table(["lab", "tunnel", "engine, Mbit/s", "iperf3, Mbit/s", "ratio"], rows))


def point(load: str) -> Point:
    """TCP over IPv4 in writes of 128 KiB."""
    return Point(transport="tcp", ip="ipv4", payload_bytes=131_072, rate=None, direction="forward", load=load)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:] or list(USUAL)))
