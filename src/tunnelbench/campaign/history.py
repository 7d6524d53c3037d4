"""What the parts of an earlier campaign took, to tell how long the next one takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import polars

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.errors import UserError
from tunnelbench.plan.estimate import REKEY_SECONDS, USUAL_DURATIONS, Durations, Span, span_of
from tunnelbench.plan.rounds import Runtime
from tunnelbench.store.read import CampaignData
from tunnelbench.study.model import Method
from tunnelbench.study.quantity import CAPACITY
from tunnelbench.study.reading import parse_study

Key = TypeVar("Key")
Sample = tuple[str, Runtime, float]
"""A VPN, where it ran, and the seconds of an instance beyond its trials."""


def durations_of(directory: Path) -> Durations:
    """What instances of the campaign in a directory took beyond their trials, by VPN and runtime.

    What it doesn't tell is as usual. Raises UserError where no instance of it was proven and finished.
    """
    with CampaignData(directory) as data:
        record = data.campaign()
        instances = data.instances()
        trials = data.machine_states().filter(polars.col("moment") == "during")
    profile = record.plan.get("profile")
    study = parse_study(
        record.study_toml,
        f"the study in {directory}",
        catalogue(),
        profile=profile if isinstance(profile, str) else None,
    )
    rekeying = REKEY_SECONDS if study.method.rekey else 0.0
    samples = list(_samples(instances, trials, rekeying))
    if not samples:
        raise UserError(
            f"no instance in {directory} was proven and finished",
            advice="Take another campaign for --like, or leave it out.",
        )
    return replace(
        USUAL_DURATIONS,
        origin=f"{len(samples)} instances of {directory}",
        trial=_beyond_traffic(trials, study.method),
        instance={**USUAL_DURATIONS.instance, **_spans((runtime, own) for _, runtime, own in samples)},
        instance_of=_spans(((vpn, runtime), own) for vpn, runtime, own in samples),
    )


def _samples(instances: polars.DataFrame, trials: polars.DataFrame, rekeying: float) -> Iterable[Sample]:
    """A VPN's first round, in which pilots run and system calls are counted, only where it has no other."""
    measuring = trials.group_by("instance").agg(polars.col("seconds").sum())
    number, proven = polars.col("campaign_round"), polars.col("status") == "proven"
    ended = instances.filter(proven & polars.col("ended").is_not_null()).filter(
        (number > 1) | (number.max().over("vpn", "runtime") == 1)
    )
    for row in ended.join(measuring, on="instance").iter_rows(named=True):
        lasted = (row["ended"] - row["started"]).total_seconds()
        yield row["vpn"], row["runtime"], max(0.0, lasted - row["seconds"] - rekeying)


def _beyond_traffic(trials: polars.DataFrame, method: Method) -> Span:
    """Of trials that searched for nothing and had nothing beside them; as usual where there are none."""
    is_plain = polars.col("rate").ne_missing(str(CAPACITY)) & (polars.col("background") == "none")
    plain = trials.filter(is_plain)["seconds"].to_list()
    return (
        span_of([max(0.0, seconds - method.trial) for seconds in plain]) if plain else USUAL_DURATIONS.trial
    )


def _spans(samples: Iterable[tuple[Key, float]]) -> dict[Key, Span]:
    by_key: dict[Key, list[float]] = {}
    for key, seconds in samples:
        by_key.setdefault(key, []).append(seconds)
    return {key: span_of(own) for key, own in by_key.items()}
