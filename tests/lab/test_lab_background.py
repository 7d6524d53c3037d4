"""Probes beside a bulk stream in real labs, also through what forwards single ports."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tunnelbench.campaign.campaign import Wish, start
from tunnelbench.campaign.observer import Silent
from tunnelbench.store.read import CampaignData

pytestmark = pytest.mark.lab

WIRE_MBIT = 20.0
HEAD = f"""
[study]
id = "test"
title = "Test"
question = "Does load delay others?"

[link]
rate = "{WIRE_MBIT:g} Mbit/s"

[method]
rounds = 1
trial = "1.2 s"
warm_up = "0.2 s"
cool_down = "0.1 s"

[factors]
"""


async def measured(factors: str, directory: Path) -> pl.DataFrame:
    """A row for each cell: vpn, transport, background, and a column for each metric."""
    await start(HEAD + factors, "test.toml", directory, Wish(rounds=1), Silent())
    with CampaignData(directory) as data:
        assert data.void_trials()["reason"].to_list() == []
        assert data.instances()["status"].unique().to_list() == ["proven"]
        trials = data.trials()
    return trials.pivot(on="metric", index=["vpn", "transport", "background"], values="value")


def one(cells: pl.DataFrame, metric: str, **levels: str) -> float:
    return cells.filter(**levels)[metric].item()


async def test_a_stream_that_fills_the_wire_delays_a_probe(tmp_path: Path) -> None:
    cells = await measured(
        """
        tunnel = ["open"]
        transport = ["udp", "icmp"]
        payload_bytes = { udp = ["200 B"] }
        rate = { udp = ["100 packets/s"], icmp = ["100 packets/s"] }
        background = ["none", "tcp", "tcp-reverse"]
        """,
        tmp_path,
    )
    delay = {
        background: one(cells, "latency_p50", transport="udp", background=background)
        for background in ("none", "tcp", "tcp-reverse")
    }
    # The queue before the wire holds 50 ms; the way back has one of its own, which datagrams don't meet.
    assert delay["tcp"] > delay["none"]
    assert delay["tcp"] > delay["tcp-reverse"]
    trip = {
        background: one(cells, "round_trip_p50", transport="icmp", background=background)
        for background in ("none", "tcp", "tcp-reverse")
    }
    assert trip["tcp"] > trip["none"]
    assert trip["tcp-reverse"] > trip["none"]
    carried = cells["background_throughput"].drop_nulls()
    assert len(carried) == 4
    assert carried.is_between(1, WIRE_MBIT).all()
    assert cells.filter(pl.col("background") != "none")["wire_overhead"].null_count() == 4


async def test_a_stream_has_a_port_of_its_own_where_single_ports_are_forwarded(tmp_path: Path) -> None:
    cells = await measured(
        """
        tunnel = ["ssh-port-forwarding/aes128-gcm", "ssh-socks/aes128-gcm"]
        profile = ["request-response"]
        background = ["tcp-both"]
        """,
        tmp_path,
    )
    assert sorted(cells["vpn"]) == ["open", "ssh-port-forwarding", "ssh-socks"]
    assert (cells["round_trip_p50"] > 0).all()
    for way in ("forward", "reverse"):
        assert (cells[f"background_throughput_{way}"] > 0).all()
