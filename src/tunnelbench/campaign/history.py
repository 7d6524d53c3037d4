"""What the parts of an earlier campaign took, to tell how long the next one takes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.errors import UserError
from tunnelbench.plan.estimate import REKEY_SECONDS, USUAL_DURATIONS, Durations, Span, span_of
from tunnelbench.plan.rounds import Runtime
from tunnelbench.store.read import CampaignData
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
        instances = data.instances().iter_rows(named=True)
        trials = data.trials().select("instance", "trial").unique()["instance"].value_counts()
        counts = dict(trials.iter_rows())
    profile = record.plan.get("profile")
    study = parse_study(
        record.study_toml,
        f"the study in {directory}",
        catalogue(),
        profile=profile if isinstance(profile, str) else None,
    )
    each = study.method.trial + USUAL_DURATIONS.trial.usual
    rekeying = REKEY_SECONDS if study.method.rekey else 0.0
    samples = list(_samples(instances, counts, each, rekeying))
    if not samples:
        raise UserError(
            f"no instance in {directory} was proven and finished",
            advice="Take another campaign for --like, or leave it out.",
        )
    return replace(
        USUAL_DURATIONS,
        origin=f"{len(samples)} instances of {directory}",
        instance={**USUAL_DURATIONS.instance, **_spans((runtime, own) for _, runtime, own in samples)},
        instance_of=_spans(((vpn, runtime), own) for vpn, runtime, own in samples),
    )


def _samples(
    instances: Iterable[dict[str, Any]], counts: dict[int, int], each: float, rekeying: float
) -> Iterable[Sample]:
    for row in instances:
        began: datetime | None = row["started"]
        ended: datetime | None = row["ended"]
        trials = counts.get(row["instance"], 0)
        if row["status"] == "proven" and began and ended and trials:
            own = (ended - began).total_seconds() - trials * each - rekeying
            yield row["vpn"], row["runtime"], max(0.0, own)


def _spans(samples: Iterable[tuple[Key, float]]) -> dict[Key, Span]:
    by_key: dict[Key, list[float]] = {}
    for key, seconds in samples:
        by_key.setdefault(key, []).append(seconds)
    return {key: span_of(own) for key, own in by_key.items()}
