"""How far a campaign has come between two rounds: what the stop rules judge by."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CellProgress:
    """What is known of one cell in one runtime, over its instances so far."""

    instance: str
    """Key of its treatment in its runtime (`plan.rounds.instance_key`)."""
    point: str
    """Key of its point."""
    name: str
    """In words."""
    is_baseline: bool
    instances: int
    variation: float | None
    """Standard deviation by mean of the metric that answers the point's question; None for one instance."""
    half_width: float | None
    """Half of the 95 % interval of the ratio to the baseline, by that ratio; None where there are too few
    instances for such an interval, or no baseline."""


@dataclass(frozen=True)
class Progress:
    """What a stop rule gets to know."""

    round_seconds: tuple[float, ...]
    """How long each finished round took, in order."""
    cells: tuple[CellProgress, ...] = ()
    """Every cell that has a number."""
