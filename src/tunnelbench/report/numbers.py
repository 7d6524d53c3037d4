"""The statistics of a campaign, made of one point after another, so that a large one needs little memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import fields
from typing import Any

import polars

from tunnelbench.analysis.checks import merged
from tunnelbench.analysis.frames import CELL, TRIALS, instance_values
from tunnelbench.analysis.groups import GROUPS
from tunnelbench.analysis.summary import summarise
from tunnelbench.report.point_numbers import LEVELS, WORDS, Numbers, numbers_of_point
from tunnelbench.store.read import CampaignData


def numbers_of(data: CampaignData, keep: Collection[str] = ()) -> Numbers:
    """All statistics of a campaign, which may be empty; and its instance values of a few metrics."""
    points = [_nothing(), *(numbers_of_point(one, keep) for one in data.by_point())]
    frames: dict[str, Any] = {
        part.name: polars.concat([getattr(one, part.name) for one in points])
        for part in fields(Numbers)
        if part.name != "warnings"
    }
    return Numbers(**frames, warnings=merged(warning for one in points for warning in one.warnings))


def _nothing() -> Numbers:
    """The numbers of no trials."""
    trials = polars.DataFrame(schema=TRIALS)
    values = instance_values(trials).with_columns(polars.col(*WORDS).cast(polars.Categorical))
    of_nodes = trials.select(*CELL, polars.col("metric").alias("node"), "value")
    return Numbers(
        summary=summarise(trials),
        processor=summarise(trials),
        switches=of_nodes,
        queued=of_nodes,
        system_calls=of_nodes,
        statuses=trials.select(*LEVELS, "status"),
        typical=trials.select(*CELL, "trial"),
        warnings=(),
        tiers=polars.DataFrame(schema=GROUPS),
        answers=values,
        kept=values,
    )
