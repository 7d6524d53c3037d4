"""How far a campaign has come, read from its store."""

from __future__ import annotations

from pathlib import Path

import polars

from tunnelbench.plan.progress import Progress
from tunnelbench.plan.stopping import StopRule
from tunnelbench.store.read import CampaignData


def progress_after(rounds: int, directory: Path, rule: StopRule) -> Progress:
    """What the rule gets to know after so many rounds: the same whether or not there was an interruption."""
    with CampaignData(directory) as data:
        seconds = round_seconds(data.instances(), rounds)
        if rule.goal is None:
            return Progress(seconds)
        # Here, since it brings scipy along, which takes memory that a campaign without a goal can do without.
        from tunnelbench.analysis.progress import progress_of

        return progress_of(data.trials(), seconds)


def round_seconds(instances: polars.DataFrame, rounds: int) -> tuple[float, ...]:
    """How long the instances of each of the first rounds took; of an interrupted one nobody knows."""
    lasted = (polars.col("ended") - polars.col("started")).dt.total_microseconds() / 1e6
    whole = instances.filter(polars.col("status") != "interrupted")
    by_round = dict(whole.group_by("campaign_round").agg(lasted.sum()).iter_rows())
    return tuple(by_round.get(number, 0.0) for number in range(1, rounds + 1))
