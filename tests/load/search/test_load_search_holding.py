"""Usual trials at rates that short ones found, in systems whose limit is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_systems import Bufferbloat

from tunnelbench.load.search.base import Trial
from tunnelbench.load.search.capacity import Capacity, Rule, find_capacity
from tunnelbench.load.search.holding import MOST_TRIALS, Attempt, hold
from tunnelbench.study.model import CapacityRule, CapacitySearch

SETTINGS = CapacitySearch.model_validate(
    {"trial": "400 ms", "width": "5 %", "repeats": 1, "loss_goal": "1 %"}
)
RULES: tuple[CapacityRule, ...] = ("conditional", "kth", "rfc2544")


@dataclass
class System:
    """Usual trials of 2 s, each into empty queues: carries up to a limit, less where it is overloaded."""

    limit: float
    """Bits per second."""
    collapse: float = 1.0
    """What it carries of its limit while it is overloaded (ratio)."""
    waver: float = 0.0
    """Standard deviation of the limit from trial to trial (ratio)."""
    random: Random = field(default_factory=lambda: Random(1))
    made: list[Attempt] = field(default_factory=list[Attempt])

    async def __call__(self, rate: float) -> Attempt:
        limit = self.limit * max(0.01, self.random.gauss(1, self.waver))
        carried = rate if rate <= limit else limit * self.collapse
        attempt = Attempt(Trial(rate, 2.0, 1 - carried / rate), rate * 2 / 8 / 1000, carried)
        self.made.append(attempt)
        return attempt

    @property
    def rates(self) -> list[float]:
        return [attempt.trial.rate for attempt in self.made]


def found(rate: float) -> Capacity:
    return Capacity(rate, rate * 1.05, (Trial(rate, 0.4, 0.0),))


async def test_what_holds_at_once_is_what_was_found() -> None:
    system = System(100e6)
    assert await hold(system, found(99e6), Rule(SETTINGS)) == found(99e6)
    assert system.rates == [99e6]


async def test_what_a_queue_swallowed_is_not_capacity() -> None:
    """A megabyte and more in front of 100 Mbit/s, which short trials fill."""
    searched = await find_capacity(Bufferbloat(100e6, queue_bits=40e6), SETTINGS, 1e9)
    assert searched.rate is not None
    assert searched.rate > 180e6
    system = System(100e6)
    held = await hold(system, searched, Rule(SETTINGS))
    assert held.rate == pytest.approx(100e6, rel=0.01)
    assert len(system.made) == 3
    assert held.failed_rate == system.rates[-2]
    assert held.trials == (*searched.trials, *(attempt.trial for attempt in system.made[:-1]))


async def test_what_collapses_under_too_much_is_not_judged_by_what_it_then_carries() -> None:
    system = System(125e6, collapse=0.5)
    held = await hold(system, found(136e6), Rule(SETTINGS))
    assert system.rates == [136e6, (136e6 + 62.5e6) / 2]
    assert (held.rate, held.failed_rate) == (system.rates[-1], 136e6)


async def test_a_small_excess_is_a_step_of_the_rule() -> None:
    system = System(97e6)
    held = await hold(system, found(100e6), Rule(SETTINGS))
    assert held.rate == pytest.approx(95e6)


async def test_a_trial_that_tells_nothing_lowers_the_rate_by_a_quarter() -> None:
    rates: list[float] = []

    async def dies(rate: float) -> Attempt:
        rates.append(rate)
        is_calm = rate < 60e6
        return Attempt(Trial(rate, 2.0, 0.0 if is_calm else 1.0), 5000.0 if is_calm else 0.0, None)

    held = await hold(dies, found(100e6), Rule(SETTINGS))
    assert rates == [100e6, 75e6, 56.25e6]
    assert (held.rate, held.failed_rate) == (56.25e6, 75e6)


async def test_what_never_holds_ends_after_some_trials_at_a_rate_that_failed() -> None:
    async def loses(rate: float) -> Attempt:
        return Attempt(Trial(rate, 2.0, 0.03), 10_000.0, 0.97 * rate)

    held = await hold(loses, found(100e6), Rule(SETTINGS))
    assert held.rate is not None
    assert held.rate == held.failed_rate
    assert held.rate == pytest.approx(100e6 * 0.95 ** (MOST_TRIALS - 1))
    assert len(held.trials) == 1 + MOST_TRIALS - 1


async def test_where_the_lowest_rate_fails_there_is_none() -> None:
    system = System(0.1e6)
    held = await hold(system, found(50e6), Rule(SETTINGS))
    assert (held.rate, held.failed_rate) == (None, SETTINGS.lowest)
    assert system.rates[-1] == SETTINGS.lowest
    assert len(held.trials) == 1 + len(system.made)


async def test_without_a_rate_nothing_is_tried() -> None:
    system = System(100e6)
    nothing = Capacity(None, 1e6, ())
    assert await hold(system, nothing, Rule(SETTINGS)) == nothing
    assert system.made == []


@given(
    limit=st.floats(0.2e6, 2e9),
    excess=st.floats(0.5, 50),
    collapse=st.floats(0.1, 1),
    waver=st.floats(0, 0.2),
    rule=st.sampled_from(RULES),
    seed=st.integers(0, 1000),
)
async def test_the_rate_never_lost_more_than_the_goal_allows(
    limit: float, excess: float, collapse: float, waver: float, rule: CapacityRule, seed: int
) -> None:
    settings = Rule(CapacitySearch(rule=rule))
    system = System(limit, collapse, waver, Random(seed))
    start = found(max(1e6, limit * excess))
    held = await hold(system, start, settings)
    last = system.made[-1]
    assert 1 <= len(system.made) <= MOST_TRIALS
    assert system.rates == sorted(system.rates, reverse=True)
    assert all(rate >= settings.settings.lowest for rate in system.rates)
    assert not any(attempt.holds(settings.loss_goal) for attempt in system.made[:-1])
    if held.rate is None:
        assert not last.holds(settings.loss_goal)
        assert held.failed_rate == last.trial.rate == settings.settings.lowest
    else:
        assert held.rate == last.trial.rate
        assert last.holds(settings.loss_goal) == (held.rate != held.failed_rate)
        assert last.holds(settings.loss_goal) or len(system.made) == MOST_TRIALS


@given(limit=st.floats(2e6, 900e6), excess=st.floats(1.03, 50), rule=st.sampled_from(RULES))
async def test_a_steady_limit_is_found_in_two_steps_however_much_was_swallowed(
    limit: float, excess: float, rule: CapacityRule
) -> None:
    system = System(limit)
    start = found(limit * excess)
    settings = Rule(CapacitySearch(rule=rule))
    held = await hold(system, start, settings)
    assert len(system.made) <= 3
    assert system.made[-1].holds(settings.loss_goal)
    assert held.rate is not None
    assert held.rate >= settings.below(limit) * (1 - 1e-9)


@pytest.mark.parametrize(
    ("loss", "holds"),
    [
        (0.0, True),
        (0.005, True),  # The goal itself.
        (0.007, True),  # Of 10,000 datagrams, within three standard deviations of it.
        (0.0072, False),
        (0.047, False),
    ],
)
def test_a_trial_holds_that_loses_no_more_than_the_goal_and_chance(loss: float, holds: bool) -> None:
    attempt = Attempt(Trial(1e6, 1.0, loss), 10_000.0, 1e6)
    assert attempt.holds(0.005) == holds


def test_any_loss_is_too_much_where_the_goal_is_none() -> None:
    assert not Attempt(Trial(1e6, 1.0, 1e-4), 10_000.0, 1e6).holds(0.0)
    assert not Attempt(Trial(1e6, 1.0, 1.0), 0.0, None).holds(0.01)
