"""The statistics of a campaign, made of some points after others, so that a large one needs little memory."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields

import polars

from tunnelbench.analysis.checks import warnings_about
from tunnelbench.analysis.frames import CELL, POINT, TREATMENT
from tunnelbench.analysis.warnings import MeasurementWarning
from tunnelbench.report.point_numbers import PointNumbers, asked_at, numbers_of_points
from tunnelbench.store.outline import in_words
from tunnelbench.store.read import CampaignData
from tunnelbench.study.treatment import BASELINE_VPN

LEVELS = (*TREATMENT, *POINT)


@dataclass(frozen=True)
class Numbers:
    """What a report is made of."""

    summary: polars.DataFrame
    """As `summarise` makes it, of every metric; without ratios that a fixed rate makes idle."""
    processor: polars.DataFrame
    """The same of processor time: `metric` is the node."""
    switches: polars.DataFrame
    """The columns of a cell, node, and `value`: median context switches per second."""
    queued: polars.DataFrame
    """The same of the time on run queues, seconds per second."""
    system_calls: polars.DataFrame
    """The same of system calls per packet on the wire."""
    statuses: polars.DataFrame
    """The columns of a cell and status, each combination that a trial had."""
    typical: polars.DataFrame
    """The columns of a cell and `trial`: the one whose answer is nearest to the cell's median."""
    warnings: tuple[MeasurementWarning, ...]
    tiers: polars.DataFrame
    """As `analysis.groups` makes them, of what answers at each point."""
    answers: polars.DataFrame
    """As `instance_values` makes them, words as categories, of what answers at each point."""
    kept: polars.DataFrame
    """The same of the metrics that were to be kept."""


def numbers_of(data: CampaignData, keep: Collection[str] = ()) -> Numbers:
    """All statistics of a campaign, which may be empty; and its instance values of a few metrics."""
    asked = asked_at(data.outline.points)
    parts = [numbers_of_points(some, asked, keep) for some in data.by_points()]
    found = PointNumbers(
        **{
            part.name: polars.concat([getattr(one, part.name) for one in parts])
            for part in fields(PointNumbers)
        }
    )

    def levelled(rows: polars.DataFrame) -> polars.DataFrame:
        return data.outline.levels(rows).select(*CELL, polars.all().exclude(CELL))

    summary = in_words(levelled(found.summary))
    baselines = found.answers.filter(polars.col("vpn") == BASELINE_VPN).drop("vpn", "lab")
    return Numbers(
        summary=summary,
        processor=in_words(levelled(found.processor)),
        switches=in_words(levelled(found.switches)),
        queued=in_words(levelled(found.queued)),
        system_calls=in_words(levelled(found.system_calls)),
        statuses=in_words(levelled(found.statuses)),
        typical=in_words(levelled(found.typical)),
        warnings=warnings_about(in_words(levelled(found.alone)), in_words(levelled(baselines)), summary),
        tiers=found.tiers,
        answers=levelled(found.answers.drop("vpn", "lab")),
        kept=levelled(found.kept.drop("vpn", "lab")),
    )
