"""Every result relative to the plain-IP baseline of its own round.

A drift of the machine moves a round's instances and its baseline alike, so it cancels in their ratio. The
ratio is taken round by round and only then summed up: pairing keeps what a round has in common out of the
spread.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from tunnelbench.analysis.frames import LAB, POINT
from tunnelbench.study.treatment import BASELINE_VPN

PAIRING = ("campaign_round", "runtime", *LAB, *POINT, "metric")
"""A baseline is that of the same round, runtime, lab and point."""


def with_ratio(values: pl.DataFrame, pairing: Sequence[str] = PAIRING) -> pl.DataFrame:
    """Add `ratio` to a frame of `instance_values`: the value divided by that of its round's baseline.

    Null where the round has no baseline for it, or one of zero. Where a round has several baselines, their
    mean. `pairing`: the columns that a value shares with its baseline.
    """
    baselines = (
        values.filter(pl.col("vpn") == BASELINE_VPN)
        .group_by(pairing)
        .agg(pl.col("value").mean().alias("baseline"))
        .filter(pl.col("baseline") != 0)
    )
    paired = values.join(baselines, on=pairing, how="left", nulls_equal=True, maintain_order="left")
    return paired.with_columns((pl.col("value") / pl.col("baseline")).alias("ratio")).drop("baseline")
