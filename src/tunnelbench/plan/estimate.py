"""How long a plan takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tunnelbench.plan.rounds import PlannedInstance, Runtime


@dataclass(frozen=True)
class Durations:
    """What the parts of a campaign take, assumed or measured so far; all in seconds."""

    trial: float
    """One trial with its warm-up and cool-down, and the pause before it."""
    overhead: Mapping[Runtime, float]
    """One instance besides its trials, by runtime: bring-up, proof and teardown."""


def estimate_seconds(instances: Iterable[PlannedInstance], durations: Durations) -> float:
    """Seconds that the instances take, one after the other: those of a plan, a round or what is left of one.

    Raises KeyError if the overhead of a runtime that they use isn't given.
    """
    return sum(
        durations.overhead[instance.runtime] + len(instance.points) * durations.trial
        for instance in instances
    )
