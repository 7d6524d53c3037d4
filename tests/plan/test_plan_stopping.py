"""Stop rules."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.plan.progress import CellProgress, Progress
from tunnelbench.plan.stopping import Budget, FixedRounds, NarrowInterval, Published, StopRule, stop_rule
from tunnelbench.study.model import Method

seconds = st.floats(min_value=0.1, max_value=1000)

CELL = CellProgress("gre", "tcp", "gre, tcp", False, instances=8, variation=0.01, half_width=0.015)
BASELINE = CellProgress("open", "tcp", "open, tcp", True, instances=8, variation=0.02, half_width=0.0)
INTERVAL = Method(stop="interval", rounds=20, rounds_min=6, goal=0.02)


def after(rounds: int, *cells: CellProgress) -> Progress:
    return Progress((10.0,) * rounds, cells)


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


def test_the_first_limit_that_is_hit_gives_the_reason() -> None:
    rule = StopRule((FixedRounds(3), Budget(60.0)))
    assert rule.reason_to_stop(after(1)) is None
    assert "budget" in (rule.reason_to_stop(Progress((40.0,))) or "")
    assert rule.reason_to_stop(after(3)) == "all 3 rounds are done"


def test_the_rule_of_a_method() -> None:
    assert stop_rule(Method(rounds=4)) == StopRule((FixedRounds(4),))
    method = Method(rounds=4, rounds_min=2).override(budget=300.0)
    assert stop_rule(method) == StopRule((FixedRounds(4), Budget(300.0, 2)))
    assert stop_rule(Method(stop="published", rounds=90)) == StopRule((FixedRounds(90),), Published())
    assert stop_rule(INTERVAL) == StopRule((FixedRounds(20),), NarrowInterval(0.02), 6, leaves_out=True)


def test_narrow_intervals_end_a_campaign() -> None:
    rule = stop_rule(INTERVAL)
    assert rule.reason_to_stop(after(8, CELL, BASELINE)) == (
        "in every cell the 95 % interval of the ratio to plain IP is within ± 2 %, after 8 rounds"
    )
    for wide in (replace(CELL, half_width=0.021), replace(CELL, half_width=None)):
        assert rule.reason_to_stop(after(8, CELL, wide, BASELINE)) is None


def test_a_goal_is_not_asked_before_the_least_rounds_nor_of_nothing() -> None:
    rule = stop_rule(INTERVAL)
    assert rule.reason_to_stop(after(5, CELL)) is None
    assert rule.settled(after(5, CELL)) == ()
    assert rule.reason_to_stop(after(6)) is None
    assert rule.reason_to_stop(after(6, BASELINE)) is None


def test_a_limit_says_what_the_goal_lacks() -> None:
    wide = replace(CELL, half_width=0.05)
    assert stop_rule(INTERVAL).reason_to_stop(after(20, CELL, wide, wide, BASELINE)) == (
        "all 20 rounds are done; in 1 of 3 cells the 95 % interval of the ratio to plain IP is within ± 2 %"
    )


@pytest.mark.parametrize(
    ("instances", "variation", "stops"),
    [(30, 0.0049, True), (29, 0.0049, False), (30, 0.005, False), (30, None, False)],
)
def test_the_published_rule(instances: int, variation: float | None, stops: bool) -> None:
    rule = stop_rule(Method(stop="published", rounds=100))
    cell = replace(CELL, instances=instances, variation=variation)
    steady = replace(BASELINE, instances=30, variation=0.001)
    assert (rule.reason_to_stop(after(30, cell, steady)) is not None) is stops
    assert rule.reason_to_stop(after(30, replace(steady, variation=0.01))) is None, "plain IP counts"
    assert rule.settled(after(30, steady, cell)) == ()


def test_what_is_known_well_enough_is_left_out_but_plain_ip() -> None:
    wide = replace(CELL, point="udp", half_width=0.05)
    assert stop_rule(INTERVAL).settled(after(8, CELL, wide, BASELINE)) == (CELL,)
    again = INTERVAL.model_copy(update={"leave_out_settled": False})
    assert stop_rule(again).settled(after(8, CELL, wide, BASELINE)) == ()


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
