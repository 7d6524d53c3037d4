from __future__ import annotations

from math import ceil, log2
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from simulated_systems import Bufferbloat, DriftingLimit, HardLimit, NoisyLimit

from tunnelbench.load.search.base import Ending
from tunnelbench.load.search.rfc2544 import BinarySearch, search

SETTINGS = BinarySearch(lowest_rate=1e6, highest_rate=1e9, resolution=1e5)


@given(
    limit=st.floats(1e6, 0.999e9),
    resolution=st.floats(1.0, 1e7),
    loss_goal=st.sampled_from([0.0, 0.001, 0.01]),
)
async def test_a_hard_limit_is_found_within_the_resolution(
    limit: float, resolution: float, loss_goal: float
) -> None:
    # At the very end of the search, rounding decides which of two right answers is given.
    assume(abs(limit / (1 - loss_goal) - 1e9) > 1)
    system = HardLimit(limit)
    settings = BinarySearch(
        lowest_rate=1e6, highest_rate=1e9, resolution=resolution, loss_goal=loss_goal, trial_s=1
    )
    result = await search(system, settings)
    if limit / (1 - loss_goal) >= 1e9:
        assert result.ending is Ending.HIGHEST_RATE
        return
    assert result.rate is not None
    assert result.failed_rate is not None
    assert 0 < result.failed_rate - result.rate <= resolution
    assert result.rate * (1 - 1e-12) <= limit / (1 - loss_goal) <= result.failed_rate * (1 + 1e-12)
    assert system.trials == len(result.trials) <= 2 + max(0, ceil(log2((1e9 - 1e6) / resolution)))


@given(chance=st.floats(0, 1), seed=st.integers(0, 1000))
async def test_noise_never_lifts_the_result_above_the_limit(chance: float, seed: int) -> None:
    result = await search(NoisyLimit(300e6, chance=chance, random=Random(seed)), SETTINGS)
    assert result.rate is None or result.rate <= 300e6
    assert len(result.trials) <= 2 + ceil(log2(1e9 / 1e5))


async def test_one_chance_loss_moves_the_result_for_good() -> None:
    result = await search(NoisyLimit(300e6, chance=0.2, random=Random(3)), SETTINGS)
    assert result.rate is not None
    assert result.rate < 290e6


async def test_a_falling_limit_is_between_its_start_and_its_end() -> None:
    system = DriftingLimit(300e6, per_second=1e-5)
    result = await search(system, SETTINGS)
    assert result.rate is not None
    assert system.limit_now - 1e5 <= result.rate <= 300e6


@pytest.mark.parametrize("trial_s", [1.0, 60.0])
async def test_a_queue_lifts_the_result_by_what_it_holds_of_a_trial(trial_s: float) -> None:
    settings = BinarySearch(lowest_rate=1e6, highest_rate=1e9, resolution=1e5, trial_s=trial_s)
    result = await search(Bufferbloat(300e6, queue_bits=60e6), settings)
    assert result.rate == pytest.approx(300e6 + 60e6 / trial_s, abs=1e5)


async def test_the_ends_of_the_search_are_told() -> None:
    above = await search(HardLimit(2e9), SETTINGS)
    assert (above.rate, above.failed_rate, above.ending) == (1e9, None, Ending.HIGHEST_RATE)
    below = await search(HardLimit(0.5e6), SETTINGS)
    assert (below.rate, below.failed_rate, below.ending) == (None, 1e6, Ending.LOWEST_RATE)
    assert [trial.rate for trial in below.trials] == [1e9, 1e6]
    assert {trial.seconds for trial in below.trials} == {60.0}


@pytest.mark.parametrize(
    "settings",
    [{"lowest_rate": 0}, {"highest_rate": 1e6}, {"resolution": 0}, {"trial_s": 0}, {"loss_goal": 1}],
)
def test_settings_that_make_no_search_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"must|finer"):
        BinarySearch(**{"lowest_rate": 1e6, "highest_rate": 1e9, "resolution": 1e5, **settings})
