"""Doubts about a campaign's numbers, as values that say what is the matter and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from tunnelbench.analysis.intervals import attainable_confidence
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment, written_systems
from tunnelbench.study.wording import in_percent, metric_words, point_title


class MeasurementWarning(Protocol):
    """What every warning has."""

    kind: ClassVar[str]
    """Short name of its class for tables and programs."""

    @property
    def message(self) -> str:
        """What is the matter, and where."""
        ...

    @property
    def advice(self) -> str:
        """What to do about it."""
        ...


@dataclass(frozen=True)
class MeasuredCell:
    """A cell and the runtime that it was measured in."""

    treatment: Treatment
    point: Point
    runtime: str

    def __str__(self) -> str:
        treatment = self.treatment
        where = f"{self.runtime}, {treatment.systems}, MTU {treatment.mtu}"
        return f"{treatment.tunnel} ({where}), {point_title(self.point)}"


@dataclass(frozen=True)
class UnstableCell:
    """The instances of a cell differ by more than a cell is expected to vary."""

    cell: MeasuredCell
    metric: str
    coefficient_of_variation: float
    bound: float

    kind: ClassVar[str] = "unstable-cell"

    @property
    def message(self) -> str:
        return (
            f"{self.cell}: {metric_words(self.metric)} varies by {in_percent(self.coefficient_of_variation)} "
            f"of its mean from one instance to the next, more than {in_percent(self.bound)}"
        )

    @property
    def advice(self) -> str:
        return "Stop other work on this machine, and run longer trials or more rounds."


@dataclass(frozen=True)
class TooFewInstances:
    """Cells have too few instances for the confidence that their intervals are named after."""

    n_cells: int
    n_instances: int
    n_needed: int
    confidence: float

    kind: ClassVar[str] = "too-few-instances"

    @property
    def message(self) -> str:
        cells = f"{self.n_cells} {'cell has' if self.n_cells == 1 else 'cells have'}"
        if self.n_instances == 1:
            return f"{cells} one instance only, which has no interval"
        return (
            f"{cells} only {self.n_instances} instances: their whole range holds the true median "
            f"in {in_percent(attainable_confidence(self.n_instances))} of campaigns, "
            f"not in {in_percent(self.confidence)}"
        )

    @property
    def advice(self) -> str:
        return f"Run at least {self.n_needed} rounds before relying on small differences."


@dataclass(frozen=True)
class MissingBaseline:
    """Rounds without a plain-IP baseline for some of their results, which therefore have no ratio there."""

    runtime: str
    gateway_os: str
    host_os: str
    mtu: int
    campaign_rounds: tuple[int, ...]

    kind: ClassVar[str] = "missing-baseline"

    @property
    def message(self) -> str:
        rounds = "round" if len(self.campaign_rounds) == 1 else "rounds"
        numbers = ", ".join(map(str, self.campaign_rounds))
        where = f"{self.runtime}, {written_systems(self.gateway_os, self.host_os)}, MTU {self.mtu}"
        return (
            f"{rounds} {numbers}: some results have no plain-IP baseline ({where}); "
            "they count as absolute values but not as ratios"
        )

    @property
    def advice(self) -> str:
        return "See why the baseline failed, or resume the campaign if it was interrupted."


@dataclass(frozen=True)
class BaselineDrift:
    """The plain-IP baseline rises or falls steadily over the rounds: the machine changes."""

    cell: MeasuredCell
    metric: str
    change: float
    """From the first round to the last, relative to the median; negative where it falls."""

    kind: ClassVar[str] = "baseline-drift"

    @property
    def message(self) -> str:
        moves = "rises" if self.change > 0 else "falls"
        return (
            f"{self.cell}: {metric_words(self.metric)} {moves} by {in_percent(abs(self.change))} "
            "from the first round to the last"
        )

    @property
    def advice(self) -> str:
        return (
            "Trust the ratios to the baseline rather than the absolute values, and look for a processor that "
            "heats up, a changing clock rate or other work on this machine."
        )


@dataclass(frozen=True)
class SlowSender:
    """The sender did not reach the rate that it was asked for: the load generator is the bottleneck."""

    cell: MeasuredCell
    asked: float
    """Mbit/s."""
    offered: float
    """Mbit/s, median over the instances."""

    kind: ClassVar[str] = "slow-sender"

    @property
    def message(self) -> str:
        return f"{self.cell}: asked for {self.asked:g} Mbit/s, the sender offered {self.offered:.4g} Mbit/s"

    @property
    def advice(self) -> str:
        return (
            "Ask for a lower rate or larger datagrams; the loss shown belongs to the rate that was offered."
        )
