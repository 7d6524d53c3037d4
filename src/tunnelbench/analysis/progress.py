"""What the stop rules judge by, from the trials so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from tunnelbench.analysis.frames import POINT, TREATMENT
from tunnelbench.analysis.intervals import CONFIDENCE, attainable_confidence
from tunnelbench.analysis.ranked import answering
from tunnelbench.analysis.summary import summarise
from tunnelbench.plan.progress import CellProgress, Progress
from tunnelbench.plan.rounds import Runtime, instance_key
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment


def progress_of(trials: pl.DataFrame, round_seconds: Sequence[float]) -> Progress:
    """How far a campaign has come after its finished rounds, whose lengths are given.

    Takes `frames.TRIALS`; trials of later rounds don't count, so that a campaign that goes on after an
    interruption decides as it did before.
    """
    finished = trials.filter(pl.col("campaign_round") <= len(round_seconds))
    summary = summarise(answering(finished))
    return Progress(tuple(round_seconds), tuple(map(_cell, summary.iter_rows(named=True))))


def _cell(row: Mapping[str, Any]) -> CellProgress:
    treatment = Treatment.model_validate({column: row[column] for column in TREATMENT})
    point = Point.model_validate({column: row[column] for column in POINT})
    runtime: Runtime = row["runtime"]
    return CellProgress(
        instance=instance_key(treatment, runtime),
        point=point.key,
        name=f"{treatment.tunnel}, {point.key}",
        is_baseline=treatment.is_baseline,
        instances=row["n_instances"],
        variation=row["coefficient_of_variation"],
        half_width=_half_width(row),
    )


def _half_width(row: Mapping[str, Any]) -> float | None:
    """None also where so few instances can't promise the confidence that the interval is named after."""
    low, high = row["ratio_low"], row["ratio_high"]
    if low is None or not row["ratio"] or attainable_confidence(row["n_paired"]) < CONFIDENCE:
        return None
    return (high - low) / 2 / abs(row["ratio"])
