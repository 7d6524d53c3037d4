"""TCP through a plain veth pair without offloads: engine and iperf3 in turn, by sizes of writes and segments.

python benchmarks/tcp.py [REPEATS] [WRITE_BYTES[:MSS] ...]
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import sys
from dataclasses import dataclass
from typing import Any

import msgspec
from common import spread, table

from tunnelbench.lab.image import find
from tunnelbench.lab.lab import Lab, LabPlan
from tunnelbench.lab.node import Node
from tunnelbench.lab.topology import TOPOLOGIES
from tunnelbench.lab.traffic import (
    Random,
    Schedule,
    TcpConnect,
    TcpConnected,
    TcpListen,
    TcpListened,
    TcpOptions,
)

USUAL = ("131072", "16384", "1448", "64", "131072:536")
WARM_UP_S, WINDOW_S = 1, 4
SECOND = 1_000_000_000


@dataclass(frozen=True)
class Found:
    """What one run found."""

    throughput: float
    """Mbit/s at the receiver."""
    processor: float
    """Processor seconds of both ends per gigabyte."""


@dataclass(frozen=True)
class Pair:
    """Two nodes with a link between them."""

    client: Node
    server: Node
    address: str
    """The server's."""

    async def engine(self, write_bytes: int, mss: int | None) -> Found:
        """One stream of the engine."""
        session = secrets.randbits(64)
        schedule = Schedule(await self.client.clock() + SECOND // 5, WARM_UP_S * SECOND, WINDOW_S * SECOND, 0)
        options = TcpOptions(write_bytes=write_bytes, content=Random(), mss=mss)
        listen = TcpListen(
            bind=f"{self.address}:0", session=session, schedule=schedule, side="receive", options=options
        )
        listener = await self.server.start_traffic(listen, TcpListened)
        connect = TcpConnect(
            destination=f"{self.address}:{listener.bound_port}",
            session=session,
            schedule=schedule,
            side="send",
            options=options,
        )
        connector = await self.client.start_traffic(connect, TcpConnected)
        connected, listened = await asyncio.gather(connector.outcome(20), listener.outcome(20))
        sent, received = connected.flow.sent, listened.flow.received
        assert sent is not None
        assert received is not None
        processor = sum(stream.processor for stream in [*sent.streams, *received.streams]) / 1e9
        measured = received.measured_bytes
        return Found(measured * 8 / WINDOW_S / 1e6, processor / (measured / 1e9))

    async def iperf3(self, write_bytes: int, mss: int | None) -> Found:
        """One stream of iperf3."""
        process = await self.server.spawn("iperf3", "-s", "-1", "--forceflush", "-B", self.address)
        try:
            await process.line("Server listening", 5)
            segment = [] if mss is None else ["-M", str(mss)]
            arguments = ["-O", str(WARM_UP_S), "-t", str(WINDOW_S), "-l", str(write_bytes), *segment]
            done = await self.client.run("iperf3", "-c", self.address, "-J", *arguments, timeout=20)
        finally:
            await process.stop()
        end = msgspec.json.decode(done.stdout, type=dict[str, Any])["end"]
        # Percentages of the time with the warm-up, by bytes of the time without it.
        shares = end["cpu_utilization_percent"]
        received: float = end["sum_received"]["bytes"]
        processor: float = (shares["host_total"] + shares["remote_total"]) / 100 * WINDOW_S
        return Found(end["sum_received"]["bits_per_second"] / 1e6, processor / (received / 1e9))


async def main(repeats: int, cases: list[str]) -> None:
    """Prints the table."""
    topology = TOPOLOGIES["host-to-host"]
    rows: list[list[str]] = []
    async with Lab(LabPlan(topology, find(), {})) as lab:
        left, right = lab.sites
        pair = Pair(lab.nodes[left.host], lab.nodes[right.host], str(right.outside.ipv4.ip))
        for case in cases:
            write, _, segment = case.partition(":")
            sizes = int(write), int(segment) if segment else None
            engine: list[Found] = []
            iperf3: list[Found] = []
            for repeat in range(repeats * 2):
                if (repeat + repeat // 2) % 2 == 0:
                    engine.append(await pair.engine(*sizes))
                else:
                    iperf3.append(await pair.iperf3(*sizes))
            rows.append([write, segment or "1448", *compared(engine, iperf3)])
            print(rows[-1], file=sys.stderr)
    headings = ["write, bytes", "segment, bytes", "engine, Mbit/s", "iperf3, Mbit/s", "ratio"]
    print(table([*headings, "engine, processor s/GB", "iperf3, processor s/GB"], rows))


def compared(engine: list[Found], iperf3: list[Found]) -> list[str]:
    """The cells of one case."""
    mine, theirs = ([found.throughput for found in tool] for tool in (engine, iperf3))
    ratio = statistics.median(mine) / statistics.median(theirs)
    costs = [spread([found.processor for found in tool], 2) for tool in (engine, iperf3)]
    return [spread(mine), spread(theirs), f"{ratio:.2f}", *costs]


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:] or list(USUAL)))
