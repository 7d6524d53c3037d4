"""Where the wall time of a campaign went."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import polars as pl


@dataclass(frozen=True)
class WallTime:
    """Seconds of a campaign by what they were spent on; together they are all of it."""

    traffic: float
    """Trials from the first packet of the warm-up to the end of the cool-down, and trials of searches."""
    around_trials: float
    """Agreeing on a start, reading counters, letting queues drain."""
    around_instances: float
    """Bringing tunnels up, proving them, taking them down."""
    between_instances: float
    """Building labs and proving them clean, choosing runtimes, stop rules."""
    before: float
    """Until the first instance: looking at the machine, measuring load generators and ciphers."""

    @property
    def total(self) -> float:
        """From the campaign's creation to the end of its last instance."""
        return (
            self.traffic + self.around_trials + self.around_instances + self.between_instances + self.before
        )

    @property
    def not_measuring(self) -> float:
        """The share of the time from the first instance on in which no trial sent anything."""
        return 1 - self.share(self.traffic)

    def share(self, seconds: float) -> float:
        """Of the time from the first instance on."""
        return seconds / (self.total - self.before)


def wall_time(
    created: datetime, instances: pl.DataFrame, states: pl.DataFrame, traffic: float
) -> WallTime | None:
    """What a campaign's time went into.

    `instances` and `states` as the store has them (`CampaignData.instances`, `.machine_states`); `traffic`
    in seconds. None where nothing was measured, and where a campaign was interrupted or went on later: nobody
    knows after how long.
    """
    ran = instances.filter(pl.col("status") != "skipped")
    whole = ran["ended"].null_count() == 0 and not ran["superseded"].any()
    beginnings = (states["moment"] == "before").sum()
    if ran.is_empty() or not whole or "interrupted" in ran["status"] or beginnings > 1:
        return None
    trials = float(states.filter(pl.col("moment") == "during")["seconds"].sum())
    if not trials:
        return None
    seconds = float((ran["ended"] - ran["started"]).dt.total_microseconds().sum()) / 1e6
    first, last = ran["started"].min(), ran["ended"].max()
    assert isinstance(first, datetime)
    assert isinstance(last, datetime)
    return WallTime(
        traffic=traffic,
        around_trials=trials - traffic,
        around_instances=seconds - trials,
        between_instances=(last - first).total_seconds() - seconds,
        before=(first - created).total_seconds(),
    )
