"""The capacity of a system by the rule that a study names, confirmed by trials that the search did not see.

A search ends at the highest rate that happened to pass, so chance favours it. Fresh trials at that rate have
to pass by the same rule; where they don't, it counts as failed and the next lower rate is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from tunnelbench.load.search import conditional, kth, rfc2544
from tunnelbench.load.search.base import Measure, Trial, run_trial
from tunnelbench.load.search.classification import Goal
from tunnelbench.study.model import CapacityRule, CapacitySearch

_LOSS_GOALS: dict[CapacityRule, float] = {"conditional": 0.005, "kth": 0.01, "rfc2544": 0.0}
_TRIAL_SECONDS: dict[CapacityRule, float] = {"conditional": 1.0, "kth": 10.0, "rfc2544": 60.0}
_TRIALS: dict[CapacityRule, int] = {"conditional": 5, "kth": 10, "rfc2544": 1}


@dataclass(frozen=True, slots=True)
class Capacity:
    """What was found."""

    rate: float | None
    """The highest confirmed rate, bits per second; None where even the lowest failed."""
    failed_rate: float | None
    """The lowest rate that failed, bits per second; None where even the highest passed."""
    trials: tuple[Trial, ...]
    """Everything that was measured, in order."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A study's settings with what its rule has where they don't say."""

    settings: CapacitySearch

    @property
    def loss_goal(self) -> float:
        """Loss (ratio) that a trial may have, or that the average of trials must stay below."""
        given = self.settings.loss_goal
        return _LOSS_GOALS[self.settings.rule] if given is None else given

    @property
    def trial_s(self) -> float:
        """Length of a trial, seconds."""
        return self.settings.trial or _TRIAL_SECONDS[self.settings.rule]

    @property
    def trials(self) -> int:
        """Trials that decide about a rate."""
        return 1 if self.settings.rule == "rfc2544" else self.settings.trials or _TRIALS[self.settings.rule]

    @property
    def title(self) -> str:
        """Rule and goal in words."""
        loss, trials = f"{100 * self.loss_goal:g} %", self.trials
        match self.settings.rule:
            case "conditional":
                exceed = f"all but {100 * self.settings.exceed:g} % of the time"
                return f"conditional throughput of RFC 9971 with at most {loss} lost in {exceed}"
            case "kth":
                return f"the rule of the KTH theses: less than {loss} lost on average of {trials} trials"
            case "rfc2544":
                return f"binary search of RFC 2544 with at most {loss} lost"

    def passes(self, trials: Sequence[Trial]) -> bool:
        """Whether some trials at one rate meet the goal."""
        if self.settings.rule == "kth":
            return fmean(trial.loss for trial in trials) < self.loss_goal
        bad = sum(trial.loss > self.loss_goal for trial in trials)
        allowed = self.settings.exceed if self.settings.rule == "conditional" else 0.0
        return bad <= allowed * len(trials)

    def below(self, rate: float) -> float:
        """The next lower rate, bits per second."""
        return rate - self.settings.step if self.settings.rule == "kth" else rate * (1 - self.settings.width)


async def find_capacity(measure: Measure, settings: CapacitySearch, highest_rate: float) -> Capacity:
    """Searches up to `highest_rate` (bits per second) and confirms what was found.

    Raises ValueError where the highest rate isn't above the lowest.
    """
    rule = Rule(settings)
    found = await _search(measure, rule, highest_rate)
    rate, failed, trials = found.rate, found.failed_rate, list(found.trials)
    while rate is not None and settings.repeats:
        fresh = [await run_trial(measure, rate, rule.trial_s) for _ in range(settings.repeats)]
        trials += fresh
        if rule.passes(fresh):
            break
        failed, lower = rate, rule.below(rate)
        rate = lower if lower >= settings.lowest else None
    return Capacity(rate, failed, tuple(trials))


async def _search(measure: Measure, rule: Rule, highest_rate: float) -> Capacity:
    settings = rule.settings
    match settings.rule:
        case "conditional":
            goal = Goal(
                loss_ratio=rule.loss_goal,
                exceed_ratio=settings.exceed,
                trial_s=rule.trial_s,
                duration_sum_s=rule.trial_s * rule.trials,
                width=settings.width,
            )
            bounded = conditional.ConditionalSearch(
                highest_rate=highest_rate, lowest_rate=settings.lowest, goals=(goal,)
            )
            found = await conditional.search(measure, bounded)
            return Capacity(found.goals[0].lower_bound, found.goals[0].upper_bound, found.trials)
        case "kth":
            steps = await kth.search(
                measure,
                kth.KthRule(
                    highest_rate=highest_rate,
                    lowest_rate=settings.lowest,
                    step=settings.step,
                    runs=rule.trials,
                    trial_s=rule.trial_s,
                    loss_goal=rule.loss_goal,
                ),
            )
            failed = steps.steps[-1].rate if steps.steps[-1].rate != steps.rate else None
            return Capacity(steps.rate, failed, tuple(it for step in steps.steps for it in step.trials))
        case "rfc2544":
            halved = await rfc2544.search(
                measure,
                rfc2544.BinarySearch(
                    highest_rate=highest_rate,
                    lowest_rate=settings.lowest,
                    resolution=settings.width * settings.lowest,
                    width=settings.width,
                    trial_s=rule.trial_s,
                    loss_goal=rule.loss_goal,
                ),
            )
            return Capacity(halved.rate, halved.failed_rate, halved.trials)
