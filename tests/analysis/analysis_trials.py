"""Trials as the analysis takes them, for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl
from hypothesis import strategies as st

from tunnelbench.analysis.frames import TRIALS

Row = dict[str, Any]


def row(vpn: str, campaign_round: int, value: float | None, **changed: Any) -> Row:  # noqa: ANN401
    """One trial's value; every VPN has one instance per round unless `instance` says otherwise."""
    return {
        "campaign_round": campaign_round,
        "instance": campaign_round * 1000 + sum(map(ord, vpn)) % 1000,
        "runtime": "namespace",
        "vpn": vpn,
        "suite": "none",
        "options": "",
        "outer_ip": "ipv4",
        "clients": 1,
        "gateway_os": "bookworm",
        "host_os": "bookworm",
        "mtu": 1500,
        "transport": "tcp",
        "ip": "ipv4",
        "payload_bytes": 131_072,
        "profile": "constant",
        "rate": None,
        "streams": None,
        "content": None,
        "sending": None,
        "congestion_control": None,
        "background": "none",
        "direction": "forward",
        "load": "engine",
        "trial": 1,
        "status": "ok",
        "metric": "throughput",
        "value": value,
        **changed,
    }


def frame(rows: Sequence[Row]) -> pl.DataFrame:
    """The rows as a frame of trials."""
    return pl.DataFrame(rows, schema=TRIALS, orient="row")


throughputs = st.floats(min_value=0.5, max_value=1e4)


@st.composite
def campaigns(draw: st.DrawFn) -> list[Row]:
    """Rounds with a baseline and other VPNs, in two runtimes, with two trials in some instances."""
    rows: list[Row] = []
    for campaign_round in range(1, draw(st.integers(1, 6)) + 1):
        for runtime in ("namespace", "kernel"):
            for vpn in ("open", "ipip", "gre"):
                for transport, rate in (("tcp", None), ("udp", "max")):
                    rows += [
                        row(
                            vpn,
                            campaign_round,
                            draw(throughputs),
                            runtime=runtime,
                            instance=len(runtime) * 1000 + campaign_round * 10 + len(vpn),
                            transport=transport,
                            rate=rate,
                            trial=len(rows) + number,
                        )
                        for number in range(draw(st.integers(1, 2)))
                    ]
    return rows
