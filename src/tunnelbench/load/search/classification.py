"""How trials decide about a rate: the Load Classification and Conditional Throughput of RFC 9971."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tunnelbench.load.search.base import Trial, require

_ROUNDING_S = 1e-9
"""What sums of seconds may be off: ten trials of 0.1 s make a second."""


class Bound(StrEnum):
    """What a rate is to a goal."""

    LOWER = "lower"
    """The goal is met at this rate, whatever further trials would say."""
    UPPER = "upper"
    """The goal is missed at this rate, whatever further trials would say."""
    UNDECIDED = "undecided"
    """More trials are needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A search goal (RFC 9971). The defaults are those of RFC 2544: every second of 60 without loss."""

    loss_ratio: float = 0.0
    """The most loss (ratio) of a good trial (Goal Loss Ratio)."""
    exceed_ratio: float = 0.0
    """The share of the time of all trials that may belong to bad ones (Goal Exceed Ratio)."""
    trial_s: float = 60.0
    """Length of a trial, seconds (Goal Final Trial Duration)."""
    duration_sum_s: float = 60.0
    """How much trial time a decision about a rate rests on, seconds (Goal Duration Sum)."""
    width: float = 0.005
    """How far the bounds may be apart at the end, as a share of the upper one (Goal Width)."""

    def __post_init__(self) -> None:
        """Raises ValueError for a goal that can't be searched for."""
        require(0 <= self.loss_ratio < 1, "the loss ratio must be at least 0 and below 1")
        require(0 <= self.exceed_ratio < 1, "the exceed ratio must be at least 0 and below 1")
        require(
            0 < self.trial_s <= self.duration_sum_s, "a trial must be over 0 s and within the duration sum"
        )
        require(1e-6 <= self.width < 1, "the width must be at least a millionth and below 1")


def classify(goal: Goal, trials: Iterable[Trial]) -> Bound:
    """What the trials at one rate make of it: the procedure of RFC 9971, appendix A.

    Shorter trials than the goal's count against a rate, not for it: their good time only makes up for their
    bad time.
    """
    full_good = full_bad = short_good = short_bad = 0.0
    for trial in trials:
        match trial.seconds >= goal.trial_s, trial.loss <= goal.loss_ratio:
            case True, True:
                full_good += trial.seconds
            case True, False:
                full_bad += trial.seconds
            case False, True:
                short_good += trial.seconds
            case _:
                short_bad += trial.seconds
    made_up = short_good * goal.exceed_ratio / (1 - goal.exceed_ratio)
    bad = full_bad + max(0.0, short_bad - made_up)
    whole = max(full_good + bad, goal.duration_sum_s)
    may_be_bad = whole * goal.exceed_ratio
    if whole - full_good <= may_be_bad + _ROUNDING_S:
        return Bound.LOWER
    return Bound.UNDECIDED if bad <= may_be_bad + _ROUNDING_S else Bound.UPPER


def conditional_throughput(goal: Goal, rate: float, trials: Sequence[Trial]) -> float:
    """What arrives at a lower bound, bits per second: RFC 9971, appendix B.

    The loss that counts is that of the worst trial which the goal does not forgive; time that was not
    measured, for it could not have changed the bound, counts as lost altogether.
    """
    full = sorted((trial for trial in trials if trial.seconds >= goal.trial_s), key=lambda trial: trial.loss)
    measured = sum(trial.seconds for trial in full)
    remaining = max(goal.duration_sum_s, measured) * (1 - goal.exceed_ratio)
    for trial in full:
        remaining -= trial.seconds
        if remaining <= _ROUNDING_S:
            return rate * (1 - trial.loss)
    return 0.0
