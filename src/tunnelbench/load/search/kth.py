"""The rule of the KTH theses on VPNs: raise the rate step by step until the average loss reaches the goal.

Steps of 1 Mbit/s, ten runs each, and the result is the last rate before the average loss first reaches 1 %.
It spends far more time than a binary search, and believes the first bad step even where the next would be
good; it is here so that results compare with those of that rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

from tunnelbench.load.search.base import Ending, Measure, Trial, require, run_trial


@dataclass(frozen=True, slots=True, kw_only=True)
class KthRule:
    """Settings."""

    highest_rate: float
    """No rate above this is tried, bits per second."""
    lowest_rate: float = 1e6
    """Where to start, bits per second."""
    step: float = 1e6
    """How much the rate is raised each time, bits per second."""
    runs: int = 10
    """Trials at each rate."""
    trial_s: float = 10.0
    """Length of a trial, seconds; the rule leaves it open."""
    loss_goal: float = 0.01
    """The average loss (ratio) at which the rule stops."""

    def __post_init__(self) -> None:
        """Raises ValueError for settings that make no search."""
        require(
            0 < self.lowest_rate <= self.highest_rate, "the lowest rate must be over 0 and not the higher"
        )
        require(self.step > 0, "the step must be over 0")
        require(self.runs >= 1, "each rate needs a run at least")
        require(self.trial_s > 0, "a trial must last longer than 0 s")
        require(
            0 < self.loss_goal <= 1, "the loss goal must be over 0, for no loss is below 0, and at most 1"
        )


@dataclass(frozen=True, slots=True)
class Step:
    """What was measured at one rate."""

    rate: float
    """Bits per second."""
    trials: tuple[Trial, ...]

    @property
    def average_loss(self) -> float:
        """The mean of the trials' loss (ratio)."""
        return fmean(trial.loss for trial in self.trials)


@dataclass(frozen=True, slots=True)
class KthResult:
    """What the rule found."""

    rate: float | None
    """The last rate before the goal was reached, bits per second; None where the first rate reached it."""
    ending: Ending
    steps: tuple[Step, ...]
    """Everything that was measured, in order."""


async def search(measure: Measure, rule: KthRule) -> KthResult:
    """Raises the rate until the average loss reaches the goal or the highest rate is passed."""
    steps: list[Step] = []
    passed: float | None = None
    while (rate := rule.lowest_rate + len(steps) * rule.step) <= rule.highest_rate:
        trials = [await run_trial(measure, rate, rule.trial_s) for _ in range(rule.runs)]
        steps.append(Step(rate, tuple(trials)))
        if steps[-1].average_loss >= rule.loss_goal:
            ending = Ending.LOWEST_RATE if passed is None else Ending.FOUND
            return KthResult(passed, ending, tuple(steps))
        passed = rate
    return KthResult(passed, Ending.HIGHEST_RATE, tuple(steps))
