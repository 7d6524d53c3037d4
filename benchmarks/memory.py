"""Memory of both ends of a long UDP measurement over loopback, and whether it grows.

python benchmarks/memory.py [SECONDS] [PACKETS_PER_SECOND]
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path

from common import table

from tunnelbench.lab.agent_program import agent_program

ADDRESS = "127.0.0.1:5219"
PAYLOAD = 64
SAMPLES = 10


async def main(seconds: int, rate: int) -> None:
    """Prints the table and the rate that was really received."""
    receiver = await start(
        "receive", "--bind", ADDRESS, "--insecure", "--once", "--longest", f"{seconds + 60}s"
    )
    try:
        await asyncio.sleep(1)
        load = ["--udp", "--rate", f"{rate}pps", "--payload", str(PAYLOAD), "--seconds", str(seconds)]
        sender = await start("send", ADDRESS, *load, "--insecure", "--json", output=True)
        ends = {"sender": sender, "receiver": receiver}
        resident: dict[str, list[int]] = {name: [] for name in ends}
        peak: dict[str, int] = {}
        for _ in range(SAMPLES):
            await asyncio.sleep(seconds / SAMPLES)
            for name, process in ends.items():
                resident[name].append(memory(process, "VmRSS"))
                peak[name] = memory(process, "VmHWM")
        output, _ = await sender.communicate()
    finally:
        if receiver.returncode is None:
            receiver.terminate()
        await receiver.wait()
    rows = [
        [name, *(f"{size / 1e6:.1f}" for size in resident[name][:: SAMPLES - 1]), f"{peak[name] / 1e6:.1f}"]
        for name in ends
    ]
    print(table(["end", f"after {seconds / SAMPLES:g} s, MB", f"after {seconds} s, MB", "peak, MB"], rows))
    print("received packets per second:", json.loads(output)["received_packets_per_second"])


async def start(*arguments: str, output: bool = False) -> Process:
    return await asyncio.create_subprocess_exec(
        agent_program(), *arguments, stdout=PIPE if output else DEVNULL
    )


def memory(process: Process, field: str) -> int:
    """A field of the process's status, bytes."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    found = re.search(rf"^{field}:\s+(\d+) kB$", status, re.MULTILINE)
    assert found, f"no {field} of an ended process"
    return int(found[1]) * 1024


if __name__ == "__main__":
    asyncio.run(
        main(
            int(sys.argv[1]) if len(sys.argv) > 1 else 600,
            int(sys.argv[2]) if len(sys.argv) > 2 else 100_000,
        )
    )
