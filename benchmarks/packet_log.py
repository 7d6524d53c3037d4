"""How fast `tbnode decode` turns a packet log into statistics, and in how much memory.

python benchmarks/packet_log.py [PACKETS] [REPEATS]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from common import spread, table

ROOT = Path(__file__).parents[1]
PACKETS_PER_SECOND = 1_000_000
USUAL_PACKETS = 100_000_000


@dataclass(frozen=True)
class Cost:
    """What a program took: time on the clock, time of processors, and the most memory at once."""

    seconds: float
    processor_seconds: float
    peak_bytes: int


def main(packets: int, repeats: int) -> None:
    """Prints the table."""
    with tempfile.TemporaryDirectory() as directory:
        log = Path(directory) / "log.parquet"
        generator = ["cargo", "run", "--release", "--locked", "-q", "-p", "tunnelbench-packet-log"]
        arguments = ["--example", "generate_log", "--", str(log), str(packets), str(PACKETS_PER_SECOND)]
        subprocess.run([*generator, *arguments], check=True, cwd=ROOT)
        decode = [str(files("tunnelbench") / "bin" / "tbnode"), "decode", "--json", str(log)]
        costs = [cost(decode, packets) for _ in range(repeats)]
        size = log.stat().st_size
    seconds = [cost.seconds for cost in costs]
    rows = [
        ["packets", f"{packets:,}"],
        ["bytes in the log, each", f"{size / packets:.2f}"],
        ["seconds", spread(seconds)],
        ["processor seconds", spread([cost.processor_seconds for cost in costs])],
        ["peak memory, MB", spread([cost.peak_bytes / 1e6 for cost in costs])],
    ]
    print(table(["", "median (least to most)"], rows))


def cost(command: list[str], packets: int) -> Cost:
    """Runs a decoder to its end; its result must be of the log that was made."""
    started = time.monotonic()
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - started
        if process.returncode != 0:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        output.seek(0)
        total = json.load(output)["total"]
    if not 0.99 < (total["packets"] + total["dropped"]) / packets <= 1:
        raise SystemExit(f"of {packets} packets the decoder saw {total}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else USUAL_PACKETS,
        int(sys.argv[2]) if len(sys.argv) > 2 else 3,
    )
