"""The highest rate that usual trials hold, from the rate down that short ones found.

A queue swallows for a while what is sent too much, so that short trials pass at rates at which longer ones
don't. What a system carried under too much says where its limit is: exactly there behind a queue, and higher
where it collapses, since it then carries less than it could (J. Mogul, K. Ramakrishnan, Eliminating Receive
Livelock in an Interrupt-driven Kernel, 1997). So the next rate is half way to what was carried, and the one
after it what was carried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

from tunnelbench.load.search.base import Trial
from tunnelbench.load.search.capacity import Capacity, Rule

MOST_TRIALS = 5
"""Usual trials for one capacity."""
_UNTOLD = 0.75
"""Where nothing is known of what was carried: the next rate (ratio)."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A usual trial."""

    trial: Trial
    datagrams: float
    """How many its loss is of; 0 where none arrived."""
    carried: float | None
    """What arrived, bits per second; None where that says nothing of the limit."""

    def holds(self, loss_goal: float) -> bool:
        """Whether it lost at most the goal and three standard deviations of a binomial count."""
        if self.trial.loss <= loss_goal:
            return True
        if not self.datagrams:
            return False
        deviation = math.sqrt(loss_goal * (1 - loss_goal) / self.datagrams)
        return self.trial.loss <= loss_goal + 3 * deviation


class Try(Protocol):
    """Makes a usual trial at a rate (bits per second)."""

    async def __call__(self, rate: float) -> Attempt:
        """What came of it."""
        ...


async def hold(attempt: Try, found: Capacity, rule: Rule) -> Capacity:
    """Lowers the rate that was found until a usual trial holds it.

    The trials that failed are added to those of the search; the last that was made, at the rate that is given
    back, is not. Where none of `MOST_TRIALS` held, that rate has failed, too. Without a rate where even the
    lowest fails.
    """
    for number in range(1, MOST_TRIALS + 1):
        if found.rate is None:
            return found
        made = await attempt(found.rate)
        if made.holds(rule.loss_goal):
            return found
        lower = _lower(made, rule, is_first=number == 1)
        if lower is not None and number == MOST_TRIALS:
            return replace(found, failed_rate=found.rate)
        found = Capacity(lower, found.rate, (*found.trials, made.trial))
    return found


def _lower(failed: Attempt, rule: Rule, *, is_first: bool) -> float | None:
    """The next rate to try, bits per second; None below the lowest."""
    rate, lowest = failed.trial.rate, rule.settings.lowest
    return max(lowest, min(rule.below(rate), _aim(failed, is_first=is_first))) if rate > lowest else None


def _aim(failed: Attempt, *, is_first: bool) -> float:
    """The rate that a trial points at, bits per second."""
    rate, carried = failed.trial.rate, failed.carried
    if carried is None:
        return _UNTOLD * rate
    return (rate + carried) / 2 if is_first else carried
