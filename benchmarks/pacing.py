"""How exactly each tool keeps a packet rate, seen from outside: its arrivals on a veth pair.

python benchmarks/pacing.py [REPEATS] [PACKETS_PER_SECOND ...]
"""

from __future__ import annotations

import statistics
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

from common import interleaved, spread, table
from generators import IPERF_PORT, TBNODE, TOOL_START_SECONDS
from pair import RECEIVER_ADDRESS, Pair, Program, pair

SECONDS = 3
PAYLOAD_BYTES = 64
TRIMMED_SECONDS = 0.5
"""Left out at the start, where tools shake hands and find their rate."""


@dataclass(frozen=True)
class Errors:
    """99th percentiles, µs."""

    sent_per_second: float
    departure: float
    """Of a departure against its timetable."""
    gap: float
    """Of the gap between two datagrams against the interval."""


def main(repeats: int, rates: Sequence[int]) -> None:
    """Prints the table."""
    rows: list[list[str]] = []
    names = {name: name for name in SENDERS}
    with pair() as ends:
        for rate in rates:
            found = interleaved(names, partial(one_run, ends, rate), repeats)
            for name, seen in found.items():
                rows.append(
                    [
                        f"{rate:,}".replace(",", " "),
                        name,
                        spread([errors.sent_per_second for errors in seen]),
                        spread([errors.departure for errors in seen]),
                        spread([errors.gap for errors in seen]),
                    ]
                )
    headings = ["asked, 1/s", "tool", "sent, 1/s", "departure error p99, µs", "gap error p99, µs"]
    print(table(headings, rows))


def one_run(ends: Pair, rate: int, name: str) -> Errors:
    """Of the tool with this name."""
    return errors(arrivals(ends, name, rate), rate)


def arrivals(ends: Pair, name: str, rate: int) -> list[int]:
    """When each datagram of one run came in, ns, the first half second left out."""
    with tempfile.TemporaryDirectory() as directory:
        capture = Path(directory, "arrivals.pcap")
        receiver = SENDERS[name][0](ends)
        time.sleep(TOOL_START_SECONDS)
        # Only the heads are kept, in a buffer that the fastest tool does not overrun.
        watching = ends.start(
            ends.receiver, "tcpdump", "-i", "wire", "-s", "60", "-B", "65536", "--time-stamp-precision=nano",
            "-w", str(capture), f"udp and greater {PAYLOAD_BYTES + 28} and dst host {RECEIVER_ADDRESS}",
        )  # fmt: skip
        time.sleep(TOOL_START_SECONDS)
        SENDERS[name][1](ends, rate).wait()
        time.sleep(TOOL_START_SECONDS)
        watching.stop()
        receiver.stop()
        times = timestamps(capture.read_bytes())
    kept = [moment for moment in times if moment - times[0] >= TRIMMED_SECONDS * 1e9]
    if len(kept) < 1000:
        raise SystemExit(f"{name} sent only {len(times)} datagrams at {rate} packets/s")
    return kept


def errors(times: Sequence[int], rate: int) -> Errors:
    """Of one run. The timetable is the one that the asked rate makes, laid where its median error is 0."""
    interval = 1e9 / rate
    against_timetable = [moment - times[0] - number * interval for number, moment in enumerate(times)]
    middle = statistics.median(against_timetable)
    departures = [abs(error - middle) / 1e3 for error in against_timetable]
    gaps = [abs(later - earlier - interval) / 1e3 for earlier, later in pairwise(times)]
    sent_per_second = (len(times) - 1) * 1e9 / (times[-1] - times[0])
    return Errors(sent_per_second, percentile(departures), percentile(gaps))


def percentile(values: Sequence[float]) -> float:
    """The 99th."""
    return statistics.quantiles(values, n=100, method="inclusive")[98]


def timestamps(pcap: bytes) -> list[int]:
    """Of all packets of a little-endian pcap file with nanoseconds."""
    (magic,) = struct.unpack_from("<I", pcap)
    if magic != 0xA1B23C4D:
        raise SystemExit("the capture has no timestamps in nanoseconds")
    moments: list[int] = []
    at = 24
    while at + 16 <= len(pcap):
        seconds, nanoseconds, kept, _ = struct.unpack_from("<IIII", pcap, at)
        moments.append(seconds * 1_000_000_000 + nanoseconds)
        at += 16 + kept
    return moments


def _engine(ends: Pair, rate: int) -> Program:
    return ends.start(
        ends.sender, TBNODE, "send", RECEIVER_ADDRESS, "--udp", "--insecure", "--rate", f"{rate}pps",
        "--payload", str(PAYLOAD_BYTES), "--seconds", str(SECONDS), "--warm-up", "0s", "--json",
    )  # fmt: skip


def _iperf3(ends: Pair, rate: int) -> Program:
    return ends.start(
        ends.sender, "iperf3", "-c", RECEIVER_ADDRESS, "-u", "-b", str(rate * PAYLOAD_BYTES * 8),
        "-l", str(PAYLOAD_BYTES), "-t", str(SECONDS),
    )  # fmt: skip


def _iperf(ends: Pair, rate: int) -> Program:
    return ends.start(
        ends.sender, "iperf", "-c", RECEIVER_ADDRESS, "-p", IPERF_PORT, "-u", "-b", f"{rate}pps",
        "-l", str(PAYLOAD_BYTES), "-t", str(SECONDS),
    )  # fmt: skip


def _ditg(ends: Pair, rate: int) -> Program:
    return ends.start(
        ends.sender, "ITGSend", "-a", RECEIVER_ADDRESS, "-T", "UDP", "-C", str(rate),
        "-c", str(PAYLOAD_BYTES), "-t", str(SECONDS * 1000),
    )  # fmt: skip


SENDERS: dict[str, tuple[Callable[[Pair], Program], Callable[[Pair, int], Program]]] = {
    "engine": (
        lambda ends: ends.start(ends.receiver, TBNODE, "receive", "--bind", "0.0.0.0", "--insecure"),
        _engine,
    ),
    "iperf3": (lambda ends: ends.start(ends.receiver, "iperf3", "-s"), _iperf3),
    "iperf 2": (lambda ends: ends.start(ends.receiver, "iperf", "-s", "-u", "-p", IPERF_PORT), _iperf),
    "D-ITG": (lambda ends: ends.start(ends.receiver, "ITGRecv"), _ditg),
}


if __name__ == "__main__":
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 3,
        [int(rate) for rate in sys.argv[2:]] or [1_000, 10_000, 100_000],
    )
