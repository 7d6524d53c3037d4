"""The one-way delay that a tool itself adds, on a veth pair that adds next to none: the engine and sockperf.

python benchmarks/delay_floor.py [REPEATS]

sockperf halves its round trips; the engine measures one way, from the intended departure to the arrival.
"""

from __future__ import annotations

import re
import statistics
import sys
import time

from common import interleaved, spread, table
from generators import TBNODE, TOOL_START_SECONDS, engine_report
from pair import RECEIVER_ADDRESS, Pair, pair

SECONDS = "4"
RATE = 1000


def main(repeats: int) -> None:
    """Prints the table."""
    tools = {"engine": engine, "sockperf ping-pong": ping_pong, "sockperf under-load": under_load}
    with pair() as ends:
        found = interleaved(tools, lambda tool: tool(ends), repeats)
    reference = statistics.median(found["sockperf ping-pong"])
    rows = [
        [name, spread(medians), f"{statistics.median(medians) / reference:.2f}"]
        for name, medians in found.items()
    ]
    print(table(["tool", "median one-way delay, µs", "to ping-pong"], rows))


def engine(ends: Pair) -> float:
    """One way, at a fixed rate."""
    receiver = ends.start(ends.receiver, TBNODE, "receive", "--bind", "0.0.0.0", "--insecure", "--once")
    time.sleep(TOOL_START_SECONDS)
    options = ("--udp", "--payload", "64", "--rate", f"{RATE}pps", "--seconds", SECONDS)
    text = ends.run(ends.sender, TBNODE, "send", RECEIVER_ADDRESS, *options, "--insecure", "--json")
    receiver.wait()
    return engine_report(text)["delay"]["p50"] / 1e3


def ping_pong(ends: Pair) -> float:
    """Half the round trip; the next request leaves when the last is answered."""
    return _sockperf(ends, "ping-pong")


def under_load(ends: Pair) -> float:
    """Half the round trip, at the engine's rate."""
    return _sockperf(ends, "under-load", "--mps", str(RATE))


def _sockperf(ends: Pair, kind: str, *options: str) -> float:
    server = ends.start(ends.receiver, "sockperf", "server", "-i", RECEIVER_ADDRESS)
    time.sleep(TOOL_START_SECONDS)
    client = ("sockperf", kind, "-i", RECEIVER_ADDRESS, "-m", "64", "-t", SECONDS)
    text = ends.run(ends.sender, *client, *options)
    server.stop()
    found = re.search(r"percentile 50\.\d+ = +([0-9.]+)", text)
    if found is None:
        raise SystemExit(f"sockperf says no median:\n{text}")
    return float(found[1])


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
