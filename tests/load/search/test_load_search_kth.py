from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_systems import Bufferbloat, DriftingLimit, HardLimit, NoisyLimit

from tunnelbench.load.search.base import Ending, Trial
from tunnelbench.load.search.kth import KthRule, search

RULE = KthRule(highest_rate=100e6)


@given(limit=st.floats(1.2e6, 99e6), runs=st.integers(1, 4))
async def test_a_hard_limit_is_found_to_one_step(limit: float, runs: int) -> None:
    system = HardLimit(limit)
    result = await search(system, KthRule(highest_rate=100e6, runs=runs))
    assert result.rate is not None
    assert result.ending is Ending.FOUND
    # A rate with less than 1 % of loss passes: it may be that much above the limit.
    assert limit - 1e6 < result.rate < limit / 0.99
    assert system.trials == runs * len(result.steps) == runs * round(result.rate / 1e6 + 1)


async def test_the_rule_is_ten_runs_of_steps_of_one_megabit_up_to_one_per_cent() -> None:
    result = await search(HardLimit(10.5e6), RULE)
    assert [step.rate for step in result.steps] == [megabits * 1e6 for megabits in range(1, 12)]
    assert {len(step.trials) for step in result.steps} == {10}
    assert result.steps[-1].trials == (Trial(11e6, 10.0, 1 - 10.5e6 / 11e6),) * 10
    assert result.rate == 10e6


async def test_exactly_the_goal_on_average_is_too_much() -> None:
    losses = iter([0.0, 0.0, 0.02, 0.0])

    async def measure(rate: float, seconds: float) -> float:
        return next(losses)

    result = await search(measure, KthRule(highest_rate=9e6, runs=2))
    assert result.rate == 1e6
    assert result.steps[-1].average_loss == 0.01


async def test_the_average_forgives_a_run_but_not_the_next_rate() -> None:
    result = await search(NoisyLimit(50e6, chance=0.3, random=Random(4)), RULE)
    assert result.rate == 50e6
    spoilt = await search(NoisyLimit(50e6, chance=0.05, spoilt=0.5, random=Random(4)), RULE)
    assert spoilt.rate is not None
    assert spoilt.rate < 50e6


async def test_a_falling_limit_is_told_as_of_the_time_it_was_met() -> None:
    system = DriftingLimit(50e6, per_second=1e-5)
    result = await search(system, RULE)
    assert result.rate is not None
    assert system.limit_now - 1e6 < result.rate < 50e6


async def test_a_queue_hides_the_limit_by_what_it_holds_of_a_trial() -> None:
    system = Bufferbloat(50e6, queue_bits=20e6)
    result = await search(system, RULE)
    # 2 Mbit/s more fill the queue within 10 s, and a little more makes 1 % of loss.
    assert result.rate == pytest.approx(52e6, abs=1e6)
    patient = await search(system, KthRule(highest_rate=100e6, runs=1, trial_s=600))
    assert patient.rate == 50e6


async def test_the_ends_of_the_search_are_told() -> None:
    above = await search(HardLimit(200e6), KthRule(highest_rate=3e6, runs=1))
    assert (above.rate, above.ending) == (3e6, Ending.HIGHEST_RATE)
    below = await search(HardLimit(0.5e6), RULE)
    assert (below.rate, below.ending, len(below.steps)) == (None, Ending.LOWEST_RATE, 1)


@pytest.mark.parametrize(
    "settings",
    [{"highest_rate": 0.5e6}, {"step": 0}, {"runs": 0}, {"trial_s": 0}, {"loss_goal": 0}, {"lowest_rate": 0}],
)
def test_settings_that_make_no_search_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"must|needs"):
        KthRule(**{"highest_rate": 9e6, **settings})  # pyright: ignore[reportArgumentType]


async def test_a_loss_that_is_no_ratio_ends_the_search() -> None:
    async def measure(rate: float, seconds: float) -> float:
        return -0.1

    with pytest.raises(ValueError, match="no ratio"):
        await search(measure, RULE)
