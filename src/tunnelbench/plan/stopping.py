"""When a campaign stops: small rules, asked between two rounds, that say why.

A *limit* ends a campaign whatever it has found out: so many rounds, or a budget. A *goal* ends it as soon as
it knows enough; where a limit comes first, the reason says what the goal still lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tunnelbench.plan.progress import CellProgress, Progress
from tunnelbench.study.model import Method


class Limit(Protocol):
    """Ends a campaign whatever it has found out."""

    def reason_to_stop(self, round_seconds: Sequence[float]) -> str | None:
        """Why to stop now, or None to go on. `round_seconds`: how long each finished round took, in order."""
        ...


class Goal(Protocol):
    """Ends a campaign that knows enough."""

    @property
    def title(self) -> str:
        """What is true of every cell that has reached it, in words."""
        ...

    def counts(self, cell: CellProgress) -> bool:
        """Whether the goal is one for this cell."""
        ...

    def is_reached(self, cell: CellProgress) -> bool:
        """Whether enough is known of a cell."""
        ...


@dataclass(frozen=True)
class FixedRounds:
    """Stop after so many rounds."""

    rounds: int

    def reason_to_stop(self, round_seconds: Sequence[float]) -> str | None:
        if len(round_seconds) < self.rounds:
            return None
        return "the one round is done" if self.rounds == 1 else f"all {self.rounds} rounds are done"


@dataclass(frozen=True)
class Budget:
    """Stop when another round, if it took as long as the longest so far, would go beyond the budget."""

    seconds: float
    """For the whole campaign."""
    rounds_min: int = 1
    """Rounds that are done whatever they cost; at least the first, whose length nobody knows."""

    def reason_to_stop(self, round_seconds: Sequence[float]) -> str | None:
        done = len(round_seconds)
        if done < max(self.rounds_min, 1):
            return None
        spent = sum(round_seconds)
        if spent + max(round_seconds) <= self.seconds:
            return None
        return (
            f"the budget of {self.seconds:g} s has no room for another round: "
            f"{done} {'round' if done == 1 else 'rounds'} took {spent:.0f} s"
        )


@dataclass(frozen=True)
class Published:
    """The rule of published evaluations of VPNs: at least 30 repeats, and a standard deviation of less than
    0.5 % of the mean, plain IP included."""

    instances: int = 30
    variation: float = 0.005

    @property
    def title(self) -> str:
        return (
            f"the standard deviation is below {_percent(self.variation)} of the mean "
            f"over at least {self.instances} instances"
        )

    def counts(self, cell: CellProgress) -> bool:
        return True

    def is_reached(self, cell: CellProgress) -> bool:
        return (
            cell.instances >= self.instances
            and cell.variation is not None
            and cell.variation < self.variation
        )


@dataclass(frozen=True)
class NarrowInterval:
    """The 95 % interval of the ratio to plain IP, over instances, is narrow enough."""

    half_width: float
    """The most that half of the interval may be, by the ratio."""

    @property
    def title(self) -> str:
        width = f"\N{PLUS-MINUS SIGN} {_percent(self.half_width)}"
        return f"the 95 % interval of the ratio to plain IP is within {width}"

    def counts(self, cell: CellProgress) -> bool:
        return not cell.is_baseline

    def is_reached(self, cell: CellProgress) -> bool:
        return cell.half_width is not None and cell.half_width <= self.half_width


@dataclass(frozen=True)
class StopRule:
    """Decides between two rounds whether another one follows, and what of it is still worth measuring."""

    limits: tuple[Limit, ...]
    goal: Goal | None = None
    rounds_min: int = 1
    """Rounds before which the goal is not asked."""
    leaves_out: bool = False
    """Whether cells that have reached the goal are not measured again."""

    def reason_to_stop(self, progress: Progress) -> str | None:
        """Why to stop now, or None to go on."""
        if self._reaches_goal(progress):
            assert self.goal is not None
            return f"in every cell {self.goal.title}, after {_rounds(len(progress.round_seconds))}"
        reasons = (limit.reason_to_stop(progress.round_seconds) for limit in self.limits)
        reason = next((reason for reason in reasons if reason is not None), None)
        if reason is None or self.goal is None:
            return reason
        return f"{reason}; {self._shortfall(self.goal, progress)}"

    def settled(self, progress: Progress) -> tuple[CellProgress, ...]:
        """The cells that need not be measured again. Plain IP always is: the others are related to it."""
        if self.goal is None or not self.leaves_out or len(progress.round_seconds) < self.rounds_min:
            return ()
        return tuple(cell for cell in progress.cells if not cell.is_baseline and self.goal.is_reached(cell))

    def _reaches_goal(self, progress: Progress) -> bool:
        if self.goal is None or len(progress.round_seconds) < max(self.rounds_min, 1):
            return False
        counted = [cell for cell in progress.cells if self.goal.counts(cell)]
        return bool(counted) and all(map(self.goal.is_reached, counted))

    def _shortfall(self, goal: Goal, progress: Progress) -> str:
        counted = [cell for cell in progress.cells if goal.counts(cell)]
        reached = sum(map(goal.is_reached, counted))
        return f"in {reached} of {len(counted)} {'cell' if len(counted) == 1 else 'cells'} {goal.title}"


def stop_rule(method: Method) -> StopRule:
    """The rule that a study's method asks for; its rounds and its budget are limits in any case."""
    limits: list[Limit] = [FixedRounds(method.rounds)]
    if method.budget is not None:
        limits.append(Budget(method.budget, method.rounds_min))
    match method.stop:
        case "rounds":
            return StopRule(tuple(limits))
        case "published":
            return StopRule(tuple(limits), Published(), method.rounds_min)
        case "interval":
            goal = NarrowInterval(method.goal)
            return StopRule(tuple(limits), goal, method.rounds_min, method.leave_out_settled)


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _percent(ratio: float) -> str:
    return f"{100 * ratio:g} %"
