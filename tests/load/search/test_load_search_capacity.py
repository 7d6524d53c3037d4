"""Capacity by each rule, confirmed; on systems whose limit is known."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_systems import HardLimit, NoisyLimit

from tunnelbench.load.search.capacity import Rule, find_capacity
from tunnelbench.study.model import CapacityRule, CapacitySearch

HIGHEST = 1e9
RULES: tuple[CapacityRule, ...] = ("conditional", "kth", "rfc2544")


@pytest.mark.parametrize("rule", RULES)
async def test_every_rule_finds_the_limit_of_a_system(rule: CapacityRule) -> None:
    system = HardLimit(40e6)
    settings = CapacitySearch(rule=rule)
    found = await find_capacity(system, settings, 100e6)
    assert found.rate is not None
    assert found.failed_rate is not None
    edge = 40e6 / (1 - Rule(settings).loss_goal)
    assert found.rate <= edge * (1 + 1e-9) <= found.failed_rate * (1 + 2e-9)
    assert found.failed_rate - found.rate <= max(0.01 * found.failed_rate, 1e6) * (1 + 1e-6)
    assert len(found.trials) == system.trials


@pytest.mark.parametrize("rule", RULES)
async def test_what_carries_everything_has_no_rate_that_failed(rule: CapacityRule) -> None:
    found = await find_capacity(HardLimit(2e9), CapacitySearch(rule=rule), 20e6)
    assert (found.rate, found.failed_rate) == (20e6, None)


@pytest.mark.parametrize("rule", RULES)
async def test_what_carries_nothing_has_no_capacity(rule: CapacityRule) -> None:
    found = await find_capacity(HardLimit(0.5e6), CapacitySearch(rule=rule), 20e6)
    assert (found.rate, found.failed_rate) == (None, 1e6)


@dataclass
class Worsening(HardLimit):
    """Carries less after so many trials, as a processor that is slowed down."""

    after: int = 0

    def loss(self, rate: float, seconds: float) -> float:
        carried = self.limit if self.trials <= self.after else 0.97 * self.limit
        return max(0.0, 1 - carried / rate)


async def test_what_is_not_confirmed_is_not_believed() -> None:
    searched = await find_capacity(HardLimit(100e6), CapacitySearch(repeats=0), HIGHEST)
    worsening = Worsening(100e6, after=len(searched.trials))
    confirmed = await find_capacity(worsening, CapacitySearch(), HIGHEST)
    assert searched.rate is not None
    assert confirmed.rate is not None
    assert confirmed.failed_rate is not None
    assert confirmed.rate < confirmed.failed_rate <= searched.rate
    assert confirmed.rate == pytest.approx(97e6, rel=0.01)


@given(limit=st.floats(2e6, 900e6), seed=st.integers(0, 100))
async def test_noise_does_not_lift_what_is_found(limit: float, seed: int) -> None:
    system = NoisyLimit(limit, chance=0.2, spoilt=0.1, random=Random(seed))
    found = await find_capacity(system, CapacitySearch(), HIGHEST)
    assert found.rate is None or found.rate <= limit / 0.995 * (1 + 1e-9)


@pytest.mark.parametrize("limit", [20e6, 95e6, 300e6, 800e6])
@pytest.mark.parametrize("chance", [0.0, 0.1])
async def test_an_answer_within_2_percent_takes_a_quarter_of_the_traffic_of_the_kth_rule(
    limit: float, chance: float
) -> None:
    """With trials of the same length, though the KTH theses' are longer."""
    ours, theirs = (NoisyLimit(limit, chance=chance, spoilt=0.003, random=Random(5)) for _ in range(2))
    quick = await find_capacity(ours, CapacitySearch(), HIGHEST)
    steps = CapacitySearch.model_validate({"rule": "kth", "trial": "1 s", "repeats": 0})
    slow = await find_capacity(theirs, steps, HIGHEST)
    assert quick.rate == pytest.approx(limit, rel=0.02)
    assert slow.rate is not None
    assert ours.elapsed <= theirs.elapsed / 4


def test_a_rule_says_what_it_is() -> None:
    assert Rule(CapacitySearch(rule="kth")).title == (
        "the rule of the KTH theses: less than 1 % lost on average of 10 trials"
    )
    assert "RFC 9971 with at most 0.5 % lost in all but 50 %" in Rule(CapacitySearch()).title
    assert Rule(CapacitySearch(rule="rfc2544")).title == "binary search of RFC 2544 with at most 0 % lost"
