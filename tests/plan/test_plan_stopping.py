"""Stop rules."""

from __future__ import annotations

from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.plan.stopping import Budget, FirstOf, FixedRounds, stop_rule
from tunnelbench.study.model import Method

seconds = st.floats(min_value=0.1, max_value=1000)


def test_fixed_rounds() -> None:
    assert FixedRounds(2).reason_to_stop([]) is None
    assert FixedRounds(2).reason_to_stop([10.0]) is None
    assert FixedRounds(2).reason_to_stop([10.0, 10.0]) == "all 2 rounds are done"


def test_a_budget_stops_when_the_longest_round_would_not_fit() -> None:
    budget = Budget(100.0)
    assert budget.reason_to_stop([30.0, 20.0, 20.0]) is None
    assert budget.reason_to_stop([30.0, 20.0, 25.0]) == (
        "the budget of 100 s has no room for another round: 3 rounds took 75 s"
    )


def test_rounds_that_must_be_done_are_done() -> None:
    assert Budget(1.0, rounds_min=2).reason_to_stop([50.0]) is None
    assert Budget(1.0, rounds_min=2).reason_to_stop([50.0, 50.0]) is not None
    assert Budget(1.0, rounds_min=0).reason_to_stop([]) is None
    assert "1 round took" in (Budget(1.0).reason_to_stop([50.0]) or "")


def test_the_first_rule_that_fires_gives_the_reason() -> None:
    rule = FirstOf((FixedRounds(3), Budget(60.0)))
    assert rule.reason_to_stop([10.0]) is None
    assert "budget" in (rule.reason_to_stop([40.0]) or "")
    assert rule.reason_to_stop([10.0] * 3) == "all 3 rounds are done"


def test_the_rule_of_a_method() -> None:
    assert stop_rule(Method(rounds=4)) == FixedRounds(4)
    method = Method(rounds=4, rounds_min=2).override(budget=300.0)
    assert stop_rule(method) == FirstOf((FixedRounds(4), Budget(300.0, 2)))


@given(st.lists(seconds, min_size=1, max_size=20), seconds, st.integers(1, 5))
def test_a_budget_is_kept_as_long_as_no_round_is_longer_than_the_ones_before(
    durations: list[float], budget: float, rounds_min: int
) -> None:
    durations.sort(reverse=True)
    rule = Budget(budget, rounds_min)
    done = [count for count in range(len(durations)) if rule.reason_to_stop(durations[:count]) is None]
    spent = list(accumulate(durations))
    for count in done:
        assert count < rounds_min or spent[count] <= budget * (1 + 1e-9)


@given(st.lists(seconds, min_size=1, max_size=10), seconds)
def test_a_rule_that_has_fired_stays_fired(durations: list[float], budget: float) -> None:
    rule = Budget(budget)
    fired = [rule.reason_to_stop(durations[:count]) is not None for count in range(1, len(durations) + 1)]
    assert fired == sorted(fired)
