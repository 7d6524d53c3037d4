"""Campaigns with known truths, and small papers to hold against them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from analysis_trials import Row, frame, row

from tunnelbench.study.correspondence import Correspondence
from tunnelbench.study.published import Published

Cell = dict[str, Any]


def campaign(
    cells: Iterable[Cell],
    truth: Callable[[Cell], float],
    rounds: int = 6,
    noise: float = 0.01,
    metric: str = "throughput",
    seed: int = 1,
) -> pl.DataFrame:
    """Trials of some cells whose values are the truth times a round's luck, which all share, and noise."""
    generator = np.random.default_rng(seed)
    rows: list[Row] = []
    everything = list(cells)
    for number in range(1, rounds + 1):
        luck = generator.lognormal(sigma=0.2)
        for cell in everything:
            value = truth(cell) * luck * generator.lognormal(sigma=noise)
            rows.append(row(cell["vpn"], number, value, metric=metric, trial=len(rows), **without_vpn(cell)))
    return frame(rows)


def without_vpn(cell: Cell) -> Cell:
    return {name: level for name, level in cell.items() if name != "vpn"}


def cells(tunnels: Iterable[tuple[str, str]], **levels: Iterable[Any]) -> list[Cell]:
    """Every tunnel (VPN, suite) at every combination of levels; UDP is sent at `max`."""
    found: list[Cell] = []
    for (vpn, suite), *combination in product(tunnels, *levels.values()):
        cell = {"vpn": vpn, "suite": suite, **dict(zip(levels, combination, strict=True))}
        if cell.get("transport") == "udp":
            cell.setdefault("rate", "max")
        found.append(cell)
    return found


def paper(*findings: dict[str, Any], **changed: Any) -> Published:  # noqa: ANN401
    """A paper with some findings, each without id, place and sentence."""
    document: dict[str, Any] = {
        "value": [],
        "study": {
            "id": "small",
            "question": "Which?",
            "topology": "site-to-site",
            "link": "one",
            "gateways": "two",
            "hosts": "two",
            "tool": "one",
        },
        "method": {},
        "factors": {"suite": ["des-sha1", "3des-sha1", "aes128-sha1"], "transport": ["tcp", "udp"]},
        **changed,
    }
    document["finding"] = [
        {"id": f"finding-{number}", "where": "1", "says": "So.", **finding}
        for number, finding in enumerate(findings, 1)
    ]
    return Published.model_validate(document)


def correspondence(levels: dict[str, dict[str, Cell]] | None = None, **notes: str) -> Correspondence:
    """What stands for what; ciphers and plain IP always."""
    ciphers = {
        "des": {"suite": ["des-sha1"]},
        "3des": {"suite": ["3des-sha1"]},
        "aes": {"suite": ["aes128-sha1"]},
    }
    return Correspondence.model_validate(
        {"source": "small", "levels": {"cipher": ciphers, **(levels or {})}, "notes": notes}
    )
