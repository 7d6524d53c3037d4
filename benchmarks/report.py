"""Time and memory of analysis and report, for campaigns of 10^4, 10^5 and 10^6 invented trials.

python benchmarks/report.py [TRIALS...]
"""

from __future__ import annotations

import random
import resource
import sqlite3
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from common import spread, table

from tunnelbench.report.build import build_report
from tunnelbench.store.database import FILE_NAME
from tunnelbench.store.model import CampaignRecord, InstanceRecord, Versions
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import MAXIMUM
from tunnelbench.study.treatment import Treatment
from tunnelbench.witness.evidence import Evidence

PAYLOADS = range(64, 1472, 14)
"""Bytes: a hundred sizes, each over UDP and TCP."""
SUITES = ("des-md5", "des-sha1", "3des-md5", "3des-sha1", "aes128-sha1", "aes192-sha1", "aes256-sha1")
NODES = ("host1", "gw1", "gw2", "host2", "machine")
METRICS = (
    *("throughput", "wire_overhead", "wire_overhead_predicted", "loss", "jitter"),
    *("latency_p50", "latency_p90", "latency_p99", "latency_p999", "latency_max"),
)
_REPEATS = 3
STARTED = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def main(sizes: list[int]) -> None:
    """Prints the table."""
    rows: list[list[str]] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as name:
            written = write(Path(name), size)
            megabytes = (Path(name) / FILE_NAME).stat().st_size / 1e6
            found: list[tuple[float, ...]] = []
            for _ in range(_REPEATS):
                with get_context("spawn").Pool(1) as apart:
                    found.append(apart.apply(measure, (name,)))
            numbers = [spread(values) for values in zip(*found, strict=True)]
            rows.append([f"{written}", f"{megabytes:.0f}", *numbers])
            print(rows[-1], file=sys.stderr, flush=True)
    print(table(["trials", "campaign, MB", "report, s", "processor, s", "peak memory, MB", "page, MB"], rows))


def measure(directory: str) -> tuple[float, float, float, float]:
    """Seconds, processor seconds and peak MB of a report in a process of its own, and its page's MB."""
    began = time.monotonic()
    with CampaignData(Path(directory)) as data:
        page = build_report(data, Path(directory) / "out")
    seconds = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    return seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1e3, page.stat().st_size / 1e6


def write(directory: Path, size: int) -> int:
    """Write a campaign of about so many trials; returns how many."""
    points = [_point(transport, payload) for payload in PAYLOADS for transport in ("tcp", "udp")]
    treatments = [_treatment("open", "none"), *(_treatment("ipsec-manual", suite) for suite in SUITES)]
    cells = [Cell(treatment=treatment, point=point) for treatment in treatments for point in points]
    rounds = max(1, size // len(cells))
    record = CampaignRecord("b", "bench", "Invented", "How long?", "", 1, {}, Versions("0", "6", "none"))
    with CampaignStore.create(directory, record, cells) as store:
        instances = [
            (_instance(store, campaign_round, treatment), index)
            for campaign_round in range(1, rounds + 1)
            for index, treatment in enumerate(treatments)
        ]
        store.finish("finished", "the benchmark is over")
    with sqlite3.connect(directory / FILE_NAME) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        _fill(connection, instances, points)
    return rounds * len(cells)


def _fill(connection: sqlite3.Connection, instances: list[tuple[int, int]], points: list[Point]) -> None:
    chance = random.Random(1)
    trials = list(enumerate(((one, index, point) for one, index in instances for point in points), start=1))

    def metrics() -> Iterator[tuple[int, str, float]]:
        for trial, (_, index, _) in trials:
            for metric in METRICS:
                yield trial, metric, (1000 - 100 * index) * chance.gauss(1, 0.03)

    def costs() -> Iterator[tuple[int, str, str, float]]:
        for trial, _ in trials:
            for node in NODES:
                for part in ("user", "system", "total"):
                    yield trial, node, part, chance.random()

    levels = ", ".join(points[0].model_dump())
    marks = ", ".join("?" * len(points[0].model_dump()))
    connection.executemany(
        f"INSERT INTO trial (id, instance, position, status, started, seconds, {levels})"
        f" VALUES (?, ?, 0, 'ok', '{STARTED.isoformat()}', 4.3, {marks})",
        ((trial, one, *point.model_dump().values()) for trial, (one, _, point) in trials),
    )
    connection.executemany("INSERT INTO metric VALUES (?, ?, ?)", metrics())
    connection.executemany("INSERT INTO node_cost VALUES (?, ?, ?, ?)", costs())
    connection.executemany(
        "INSERT INTO machine_state"
        " (trial, moment, seconds, processors, others, stolen, clock_step_ms, clock_source)"
        " VALUES (?, 'during', 4.3, 2, ?, 0.0, 0.0, 'tsc')",
        ((trial, chance.random() / 20) for trial, _ in trials),
    )


def _instance(store: CampaignStore, campaign_round: int, treatment: Treatment) -> int:
    identity = store.begin_instance(InstanceRecord(campaign_round, 0, treatment, "namespace"))
    encrypted = not treatment.is_baseline
    evidence = Evidence({"esp": 9}, not encrypted, not encrypted, not encrypted, "aes", "aes")
    store.prove(identity, evidence, 500.0)
    store.end_instance(identity, "proven")
    return identity


def _point(transport: str, payload: int) -> Point:
    return Point.model_validate(
        {
            "transport": transport,
            "ip": "ipv4",
            "payload_bytes": payload,
            "rate": MAXIMUM if transport == "udp" else None,
            "direction": "forward",
            "load": "engine",
        }
    )


def _treatment(vpn: str, suite: str) -> Treatment:
    return Treatment(vpn=vpn, suite=suite, gateway_os="bookworm", host_os="bookworm", mtu=1500)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [10_000, 100_000, 1_000_000])
