"""The frames that the analysis takes: one row per trial and metric, and from it one per instance and metric.

The instance is the unit of replication. Trials inside one instance share its keys, daemons and place in time,
so they are averaged first and never counted as repetitions (T. Kalibera and R. Jones, Rigorous Benchmarking
in Reasonable Time, ISMM 2013: repeat at the highest level at which results vary).
"""

from __future__ import annotations

import polars as pl

TREATMENT = ("vpn", "suite", "image", "mtu")
POINT = ("transport", "ip", "payload_bytes", "rate", "direction", "load")
CELL = ("runtime", *TREATMENT, *POINT)
"""The columns that tell cells apart; the same cell in two runtimes is two rows of every result."""

TRIALS = pl.Schema(
    {
        "campaign_round": pl.Int64,
        "instance": pl.Int64,
        "runtime": pl.String,
        "vpn": pl.String,
        "suite": pl.String,
        "image": pl.String,
        "mtu": pl.Int64,
        "transport": pl.String,
        "ip": pl.String,
        "payload_bytes": pl.Int64,
        "rate": pl.String,
        "direction": pl.String,
        "load": pl.String,
        "trial": pl.Int64,
        "status": pl.String,
        "metric": pl.String,
        "value": pl.Float64,
    }
)
"""Columns of `trials`: one row per trial and metric. Only rows of status `ok` with a value count.

`rate` is null for TCP. What belongs to an instance as a whole (`setup`) has nulls for the point.
"""


def instance_values(trials: pl.DataFrame) -> pl.DataFrame:
    """One row per instance, cell and metric: `value`, the mean over its trials, and `n_trials`.

    Takes `TRIALS`. Columns: campaign_round, instance, those of `CELL`, metric, value, n_trials.
    """
    counted = trials.filter(pl.col("status") == "ok", pl.col("value").is_not_null())
    return counted.group_by("campaign_round", "instance", *CELL, "metric", maintain_order=True).agg(
        pl.col("value").mean(), pl.len().alias("n_trials")
    )


def node_cost_trials(node_costs: pl.DataFrame) -> pl.DataFrame:
    """Processor costs in the shape of `trials`: the metric is `NODE.FIELD`, such as `gw1.total`.

    `node_costs` has the columns of `trials` with `node` and `field` in place of `metric`.
    """
    metric = pl.concat_str("node", "field", separator=".").alias("metric")
    return node_costs.with_columns(metric).select(TRIALS.names())


def setup_trials(instances: pl.DataFrame) -> pl.DataFrame:
    """Set-up times in the shape of `trials`: the metric is `setup`, in ms, and the point is null.

    `instances` has a row per instance with its levels, `runtime`, `status` and `setup_ms`; only proven ones
    count.
    """
    proven = instances.filter(pl.col("status") == "proven")
    return proven.select(
        "campaign_round",
        "instance",
        "runtime",
        *TREATMENT,
        *(pl.lit(None, TRIALS[column]).alias(column) for column in POINT),
        pl.col("instance").alias("trial"),
        pl.lit("ok").alias("status"),
        pl.lit("setup").alias("metric"),
        pl.col("setup_ms").alias("value"),
    )
