"""What the stop rules judge by, from the trials so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from tunnelbench.analysis.frames import CELL, POINT, TREATMENT, instance_values
from tunnelbench.analysis.paired import difference
from tunnelbench.analysis.ranked import answering
from tunnelbench.analysis.ratio import with_ratio
from tunnelbench.plan.progress import CellProgress, Progress
from tunnelbench.plan.rounds import Runtime, instance_key
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.wording import point_title

FEWEST = 4
"""Instances from which on an interval counts. Stopping as soon as an interval is narrow favours those that
are so by luck: from two on, one of 95 % would hold the truth in 88 %, from four on in 91 to 95 %."""


def progress_of(trials: pl.DataFrame, round_seconds: Sequence[float]) -> Progress:
    """How far a campaign has come after its finished rounds, whose lengths are given.

    Takes `frames.TRIALS`; trials of later rounds don't count, so that a campaign that goes on after an
    interruption decides as it did before.
    """
    finished = trials.filter(pl.col("campaign_round") <= len(round_seconds))
    values = with_ratio(instance_values(answering(finished)))
    value = pl.col("value")
    cells = values.group_by(*CELL, maintain_order=True).agg(
        pl.len().alias("instances"),
        (value.std(ddof=1) / value.mean().abs()).alias("variation"),
        pl.col("ratio").drop_nulls().alias("ratios"),
    )
    return Progress(tuple(round_seconds), tuple(map(_cell, cells.iter_rows(named=True))))


def _cell(row: Mapping[str, Any]) -> CellProgress:
    treatment = Treatment.model_validate({column: row[column] for column in TREATMENT})
    point = Point.model_validate({column: row[column] for column in POINT})
    runtime: Runtime = row["runtime"]
    return CellProgress(
        instance=instance_key(treatment, runtime),
        point=point.key,
        name=f"{treatment.tunnel}, {point_title(point)}",
        is_baseline=treatment.is_baseline,
        instances=row["instances"],
        variation=row["variation"],
        half_width=_half_width(row["ratios"]),
    )


def _half_width(ratios: Sequence[float]) -> float | None:
    """Of Student's interval of the geometric mean, on which comparisons rest."""
    if len(ratios) < FEWEST or min(ratios) <= 0:
        return None
    found = difference(np.log(ratios))
    interval = found.interval()
    return None if interval is None else (interval[1] - interval[0]) / 2 / found.ratio
