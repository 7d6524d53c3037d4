"""UDP and TCP load generators in turn between two namespaces: what arrives per second, and what it costs.

python benchmarks/generators.py [REPEATS] [ROOT_WITH_NETPERF]

Needs root, and Debian's packages iperf3, iperf, d-itg, sockperf and ethtool. netperf is not in Debian 12: for
it give the root tree of an image of Debian 13 (`tunnelbench image build trixie --release trixie`).
"""

from __future__ import annotations

import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from common import interleaved, spread, table
from pair import RECEIVER_ADDRESS, Pair, pair, rooted

from tunnelbench.lab.agent_program import agent_program

SECONDS = 4
TOOL_START_SECONDS = 0.4
IPERF_PORT = "5301"
TBNODE = str(agent_program())


@dataclass(frozen=True)
class Tool:
    """How a tool is run at both ends."""

    receive: tuple[str, ...]
    send: tuple[str, ...]
    received_per_second: Callable[[str], float] | None = None
    """By the tool's own report, for where the kernel's count of datagrams is not that of the sender."""
    receiver_ends_itself: bool = False


@dataclass(frozen=True)
class Run:
    """What one run of a tool came to."""

    received_per_second: float
    nanoseconds_each: float
    """Processor time of both programs for each datagram received."""
    packets_each: float
    """Packets on the wire for each datagram received: 1 where each went alone and none was lost."""


def main(repeats: int, netperf_root: Path | None) -> None:
    """Prints the tables."""
    with pair() as ends:
        runs = interleaved(small_datagram_tools(netperf_root), partial(datagrams, ends), repeats)
        print("UDP, 64 bytes, offloads off\n\n" + datagram_table(runs))
        bulk = interleaved(stream_tools(netperf_root), partial(megabits, ends), repeats)
        rows = [[name, spread(values)] for name, values in bulk.items()]
        print("\nTCP, one stream, writes of 128 KiB, offloads off\n\n" + table(["tool", "Mbit/s"], rows))
    with pair(offloads=True) as ends:
        runs = interleaved(large_datagram_tools(), partial(datagrams, ends), repeats)
        print("\nUDP, 1400 bytes, offloads on\n\n" + datagram_table(runs))


def datagrams(ends: Pair, tool: Tool) -> Run:
    """Runs a tool once."""
    receiver = ends.start(ends.receiver, *tool.receive)
    time.sleep(TOOL_START_SECONDS)
    delivered, packets = ends.delivered_datagrams(), ends.received_packets()
    sender = ends.start(ends.sender, *tool.send)
    sender.wait()
    if not tool.receiver_ends_itself:
        time.sleep(TOOL_START_SECONDS)
        receiver.stop()
    receiver.wait()
    delivered, packets = ends.delivered_datagrams() - delivered, ends.received_packets() - packets
    per_second = delivered / SECONDS
    if tool.received_per_second is not None:
        per_second = tool.received_per_second(sender.text)
    received = per_second * SECONDS
    if received < 1000:
        raise SystemExit(f"{' '.join(tool.send)} brought nothing across:\n{sender.text}\n{receiver.text}")
    processor_seconds = sender.processor_seconds + receiver.processor_seconds
    return Run(per_second, processor_seconds * 1e9 / received, packets / received)


def megabits(ends: Pair, tool: Tool) -> float:
    """TCP throughput by a tool's own report, Mbit/s."""
    receiver = ends.start(ends.receiver, *tool.receive)
    time.sleep(TOOL_START_SECONDS)
    text = ends.run(ends.sender, *tool.send)
    if not tool.receiver_ends_itself:
        receiver.stop()
    receiver.wait()
    assert tool.received_per_second is not None
    return tool.received_per_second(text)


def datagram_table(runs: Mapping[str, Sequence[Run]]) -> str:
    """With ratios to iperf3."""
    reference = statistics.median(run.received_per_second for run in runs["iperf3"])
    cost = statistics.median(run.nanoseconds_each for run in runs["iperf3"])
    rows = [
        [
            name,
            spread([run.received_per_second / 1e3 for run in found]),
            f"{statistics.median(run.received_per_second for run in found) / reference:.2f}",
            spread([run.nanoseconds_each for run in found]),
            f"{statistics.median(run.nanoseconds_each for run in found) / cost:.2f}",
            f"{statistics.median(run.packets_each for run in found):.3f}",
        ]
        for name, found in runs.items()
    ]
    headings = ["tool", "received, 1000/s", "to iperf3", "processor, ns each", "to iperf3", "packets each"]
    return table(headings, rows)


def small_datagram_tools(netperf_root: Path | None) -> dict[str, Tool]:
    """As fast as they can, 64 bytes each."""
    seconds, size = str(SECONDS), "64"
    tools = {
        "engine, batched": engine("--udp", "--payload", size, "--mode", "batched"),
        "engine, one by one": engine("--udp", "--payload", size, "--mode", "per-packet"),
        "engine, segmented by the kernel": engine("--udp", "--payload", size, "--mode", "segmented"),
        "iperf3": iperf3("-u", "-b", "0", "-l", size),
        "iperf 2": Tool(
            ("iperf", "-s", "-u", "-p", IPERF_PORT, "-l", size),
            ("iperf", "-c", RECEIVER_ADDRESS, "-p", IPERF_PORT, "-u", "-b", "99g", "-l", size, "-t", seconds),
        ),
        "D-ITG": Tool(
            ("ITGRecv",),
            ("ITGSend", "-a", RECEIVER_ADDRESS, "-T", "UDP", "-C", "10000000", "-c", size,
             "-t", str(SECONDS * 1000)),
        ),
        "sockperf": Tool(
            ("sockperf", "server", "-i", RECEIVER_ADDRESS),
            ("sockperf", "throughput", "-i", RECEIVER_ADDRESS, "-m", size, "-t", seconds),
        ),
    }  # fmt: skip
    if netperf_root is not None:
        tools["netperf"] = netperf(netperf_root, "UDP_STREAM", "-m", size, "-R", "1")
    return tools


def large_datagram_tools() -> dict[str, Tool]:
    """What segmentation offload brings."""
    return {
        "engine, segmented": engine("--udp", "--payload", "1400", "--mode", "segmented"),
        "engine, batched": engine("--udp", "--payload", "1400", "--mode", "batched"),
        "iperf3": iperf3("-u", "-b", "0", "-l", "1400"),
    }


def stream_tools(netperf_root: Path | None) -> dict[str, Tool]:
    """One TCP stream."""
    tools = {
        "engine": replace(engine("--tcp", "--payload", "131072"), received_per_second=engine_megabits),
        "iperf3": replace(iperf3("-l", "128K"), received_per_second=iperf3_megabits),
        "iperf 2": Tool(
            ("iperf", "-s", "-p", IPERF_PORT),
            ("iperf", "-c", RECEIVER_ADDRESS, "-p", IPERF_PORT, "-l", "128K", "-t", str(SECONDS), "-f", "m"),
            received_per_second=iperf_megabits,
        ),
    }
    if netperf_root is not None:
        stream = netperf(netperf_root, "TCP_STREAM", "-m", "131072")
        tools["netperf"] = replace(stream, received_per_second=netperf_megabits)
    return tools


def engine(*options: str) -> Tool:
    """The engine on its own, as a user starts it."""
    how_long = ("--rate", "max", "--seconds", str(SECONDS), "--warm-up", "0s")
    return Tool(
        (TBNODE, "receive", "--bind", "0.0.0.0", "--insecure", "--once"),
        (TBNODE, "send", RECEIVER_ADDRESS, *options, *how_long, "--insecure", "--json"),
        received_per_second=lambda text: engine_report(text)["received_packets_per_second"],
        receiver_ends_itself=True,
    )


def iperf3(*options: str) -> Tool:
    """iperf3, whose server ends after one client."""
    return Tool(
        ("iperf3", "-s", "-1"),
        ("iperf3", "-c", RECEIVER_ADDRESS, *options, "-t", str(SECONDS), "--json"),
        receiver_ends_itself=True,
    )


def netperf(root: Path, test: str, *options: str) -> Tool:
    """netperf out of another root tree."""
    return Tool(
        rooted(root, "netserver", "-D", "-f", "-4"),
        rooted(root, "netperf", "-H", RECEIVER_ADDRESS, "-t", test, "-l", str(SECONDS), "--", *options),
    )


def engine_report(text: str) -> dict[str, Any]:
    """The JSON that the engine prints, below what it says for people."""
    return json.loads(text[text.index("{") :])


def engine_megabits(text: str) -> float:
    """Throughput at the receiver."""
    return engine_report(text)["throughput_bits_per_second"] / 1e6


def iperf3_megabits(text: str) -> float:
    """Throughput at the receiver."""
    return json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e6


def iperf_megabits(text: str) -> float:
    """The last figure that it prints."""
    return float(re.findall(r"([0-9.]+) Mbits/sec", text)[-1])


def netperf_megabits(text: str) -> float:
    """The last column of its table."""
    return float(text.split()[-1])


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 5,
        Path(sys.argv[2]) if len(sys.argv) > 2 else None,
    )
