"""Conditional throughput of RFC 9971 (Multiple Loss Ratio Search, MLRsearch).

A goal says how much loss a trial may have and which share of the trial time may have more, so that one chance
loss does not decide. Several goals share their trials. A rate is a lower bound of a goal, an upper bound, or
undecided (RFC 9971, appendix A); the search measures until the highest lower bound below the lowest upper
bound is as close to it as the goal's width. Which rate to try next is left to implementations; here it
follows from the trials so far alone: the highest rate first, then what it let through, then doubling steps
and halves.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import sqrt

from tunnelbench.load.search.base import Ending, Measure, Trial, require, run_trial
from tunnelbench.load.search.classification import Bound, Goal, classify, conditional_throughput

_ROUNDING = 1e-9
"""Relative: what the computation of rates may be off."""
_MOST_DOUBLINGS = 60
"""Of the smallest width, more than any two rates are apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionalSearch:
    """Settings."""

    highest_rate: float
    """No rate above this is tried, bits per second (the RFC's Max Load)."""
    lowest_rate: float
    """No rate below this is tried, bits per second (the RFC's Min Load)."""
    goals: tuple[Goal, ...]
    """What to search for, in the order in which to work on them."""
    most_trials: int = 1000
    """Trials in all after which the search gives up."""

    def __post_init__(self) -> None:
        """Raises ValueError for settings that make no search."""
        require(
            0 < self.lowest_rate < self.highest_rate, "the lowest rate must be over 0 and below the highest"
        )
        require(bool(self.goals), "there must be a goal to search for")
        require(self.most_trials >= 1, "at least one trial must be allowed")


@dataclass(frozen=True, slots=True)
class GoalResult:
    """What was found for one goal."""

    goal: Goal
    lower_bound: float | None
    """The relevant lower bound, bits per second sent; None where there is none."""
    upper_bound: float | None
    """The relevant upper bound, bits per second sent; None where there is none."""
    conditional_throughput: float | None
    """Bits per second that arrived at the relevant lower bound, by the goal's quantile of loss."""
    ending: Ending


@dataclass(frozen=True, slots=True)
class ConditionalResult:
    """What the search found."""

    goals: tuple[GoalResult, ...]
    """In the order of the settings."""
    trials: tuple[Trial, ...]
    """Everything that was measured, in order."""


async def search(measure: Measure, settings: ConditionalSearch) -> ConditionalResult:
    """Measures until every goal has its bounds, or the allowed trials are spent."""
    trials: list[Trial] = []
    while len(trials) < settings.most_trials and (planned := _next_trial(trials, settings)) is not None:
        trials.append(await run_trial(measure, *planned))
    results = tuple(_result(goal, trials, settings) for goal in settings.goals)
    return ConditionalResult(results, tuple(trials))


def _next_trial(trials: Sequence[Trial], settings: ConditionalSearch) -> tuple[float, float] | None:
    """Rate and seconds of what to measure next; None where every goal is reached."""
    for goal in settings.goals:
        rate = _State.of(goal, trials, settings).next_rate()
        if rate is not None:
            return rate, goal.trial_s
    return None


def _result(goal: Goal, trials: Sequence[Trial], settings: ConditionalSearch) -> GoalResult:
    state = _State.of(goal, trials, settings)
    lower, upper = state.lower, state.upper
    if state.next_rate() is not None:
        ending = Ending.MOST_TRIALS
    elif lower is None:
        ending = Ending.LOWEST_RATE
    elif upper is None:
        ending = Ending.HIGHEST_RATE
    else:
        ending = Ending.FOUND
    throughput = None if lower is None else conditional_throughput(goal, lower, _at(lower, trials))
    return GoalResult(goal, lower, upper, throughput, ending)


@dataclass(frozen=True, slots=True)
class _State:
    """Where the search for one goal stands."""

    goal: Goal
    settings: ConditionalSearch
    lowers: tuple[float, ...]
    """Rates that are lower bounds, below every upper bound."""
    uppers: tuple[float, ...]
    """Rates that are upper bounds."""
    arrived: float
    """Bits per second that the best trial at the lowest upper bound let through; 0 where there is none."""

    @classmethod
    def of(cls, goal: Goal, trials: Sequence[Trial], settings: ConditionalSearch) -> _State:
        rates = dict.fromkeys(trial.rate for trial in trials)
        bounds = {rate: classify(goal, _at(rate, trials)) for rate in rates}
        uppers = tuple(rate for rate, bound in bounds.items() if bound is Bound.UPPER)
        least_upper = min(uppers, default=float("inf"))
        lowers = tuple(rate for rate, bound in bounds.items() if bound is Bound.LOWER and rate < least_upper)
        arrived = max((trial.rate * (1 - trial.loss) for trial in _at(least_upper, trials)), default=0.0)
        return cls(goal, settings, lowers, uppers, arrived)

    @property
    def lower(self) -> float | None:
        """The relevant lower bound."""
        return max(self.lowers, default=None)

    @property
    def upper(self) -> float | None:
        """The relevant upper bound."""
        return min(self.uppers, default=None)

    def next_rate(self) -> float | None:
        """The rate to measure next; the same one until it is a bound, and None where the goal is reached."""
        lower, upper = self.lower, self.upper
        if upper is None:
            return self.settings.highest_rate if lower != self.settings.highest_rate else None
        if lower is None:
            return self._below(upper) if upper > self.settings.lowest_rate else None
        if upper - lower <= self.goal.width * upper * (1 + _ROUNDING):
            return None
        # The step may be wider than the gap, and then the middle is nearer.
        return min(lower / max(self._narrower(len(self.lowers)), lower / upper), sqrt(lower * upper))

    def _below(self, upper: float) -> float:
        """What got through at the upper bound, for it is the limit if only the excess was lost; or a step."""
        carried = self.arrived / (1 - self.goal.loss_ratio)
        return max(self.settings.lowest_rate, min(carried, upper * self._narrower(len(self.uppers))))

    def _narrower(self, steps: int) -> float:
        """The factor of the n-th step outwards, each twice as wide as the last (in logarithms)."""
        return (1 - self.goal.width) ** (2.0 ** min(steps - 1, _MOST_DOUBLINGS))


def _at(rate: float, trials: Iterable[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.rate == rate]
