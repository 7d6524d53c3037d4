"""The frames that the analysis takes: one row per trial and metric, and from it one per instance and metric.

The instance is the unit of replication. Trials inside one instance share its keys, daemons and place in time,
so they are averaged first and never counted as repetitions (T. Kalibera and R. Jones, Rigorous Benchmarking
in Reasonable Time, ISMM 2013: repeat at the highest level at which results vary).
"""

from __future__ import annotations

import polars as pl

from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment

TREATMENT = tuple(Treatment.model_fields)
LAB = ("clients", "gateway_os", "host_os", "mtu")
"""What of a treatment a baseline shares."""
POINT = tuple(Point.model_fields)
CELL = ("runtime", *TREATMENT, *POINT)
"""The columns that tell cells apart; the same cell in two runtimes is two rows of every result."""

TRIALS = pl.Schema(
    {
        "campaign_round": pl.Int64,
        "instance": pl.Int64,
        "runtime": pl.String,
        "vpn": pl.String,
        "suite": pl.String,
        "options": pl.String,
        "outer_ip": pl.String,
        "clients": pl.Int64,
        "gateway_os": pl.String,
        "host_os": pl.String,
        "mtu": pl.Int64,
        "transport": pl.String,
        "ip": pl.String,
        "profile": pl.String,
        "payload_bytes": pl.Int64,
        "rate": pl.String,
        "direction": pl.String,
        "streams": pl.Int64,
        "content": pl.String,
        "sending": pl.String,
        "congestion_control": pl.String,
        "background": pl.String,
        "load": pl.String,
        "trial": pl.Int64,
        "status": pl.String,
        "metric": pl.String,
        "value": pl.Float64,
    }
)
"""Columns of `trials`: one row per trial and metric. Only rows of status `ok` with a value count.

Factors of a point are null where they don't apply.
"""


def instance_values(trials: pl.DataFrame) -> pl.DataFrame:
    """One row per instance, cell and metric: `value`, the mean over its trials, and `n_trials`.

    Takes `TRIALS`. Columns: campaign_round, instance, those of `CELL`, metric, value, n_trials.
    """
    counted = trials.filter(pl.col("status") == "ok", pl.col("value").is_not_null())
    return counted.group_by("campaign_round", "instance", *CELL, "metric", maintain_order=True).agg(
        pl.col("value").mean(), pl.len().alias("n_trials")
    )
