"""What has changed between two campaigns."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import pytest
from analysis_trials import Row, frame, row
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.regression import Verdict, compare, shift_of

samples = st.lists(st.integers(1, 10_000), min_size=2, max_size=12)
FIXED_RATE = {"transport": "udp", "payload_bytes": 1400, "rate": "30 Mbit/s", "metric": "latency_p50"}


def campaign(shares: dict[str, float], rounds: int = 10, spread: float = 0.01, seed: int = 1) -> list[Row]:
    """Plain IP at about 1000 in each round, and VPNs at their shares of that."""
    random = Random(seed)
    return [
        row(vpn, number, 1000 * share * random.gauss(1, spread))
        for number in range(1, rounds + 1)
        for vpn, share in {"open": 1.0, **shares}.items()
    ]


def verdicts(
    before: list[Row], after: list[Row], least: float = 0.01, relative: bool = False
) -> dict[str, Verdict]:
    found = compare(frame(before), frame(after), least, relative)
    return {change.cell.treatment.vpn: change.verdict for change in found.changes}


@given(samples, samples)
def test_the_test_is_welchs(before: list[int], after: list[int]) -> None:
    logs = [[math.log(value) for value in sample] for sample in (after, before)]
    shift = shift_of(before, after)
    assume(all(len(set(sample)) > 1 for sample in (before, after)))
    judge: Any = stats.ttest_ind(*logs, equal_var=False)  # pyright: ignore[reportUnknownMemberType]
    interval = judge.confidence_interval(0.95)
    assert shift.p_value == pytest.approx(judge.pvalue, abs=1e-9)
    assert shift.low == pytest.approx(math.exp(interval.low), rel=1e-6)
    assert shift.high == pytest.approx(math.exp(interval.high), rel=1e-6)


@given(samples, samples)
def test_both_ways_round_say_the_same(before: list[int], after: list[int]) -> None:
    one, other = shift_of(before, after), shift_of(after, before)
    assert one.ratio == pytest.approx(1 / other.ratio)
    assert one.p_value == pytest.approx(other.p_value, abs=1e-12)
    assert one.low is not None
    assert other.high is not None
    assert one.low == pytest.approx(1 / other.high)


def test_a_vpn_that_has_become_slower_is_worse_and_one_that_has_not_is_unchanged() -> None:
    found = verdicts(campaign({"gre": 0.8, "ipip": 0.9}), campaign({"gre": 0.7, "ipip": 0.9}, seed=2), 0.02)
    assert found == {"gre": "worse", "ipip": "unchanged", "open": "unchanged"}
    assert next(iter(found)) == "gre", "the worst comes first"
    assert verdicts(campaign({"gre": 0.7}), campaign({"gre": 0.8}, seed=2))["gre"] == "better"


def test_more_delay_is_worse() -> None:
    before = [row("gre", number, 1.0 + number / 100, **FIXED_RATE) for number in range(1, 7)]
    after = [{**one, "value": 2 * one["value"]} for one in before]
    assert verdicts(before, after) == {"gre": "worse"}
    assert verdicts(after, before) == {"gre": "better"}


def test_no_change_smaller_than_what_matters_is_a_regression_however_sure() -> None:
    before, after = campaign({"gre": 0.8}, spread=1e-4), campaign({"gre": 0.79}, spread=1e-4, seed=2)
    assert verdicts(before, after, least=0.005)["gre"] == "worse"
    assert verdicts(before, after, least=0.05)["gre"] == "unchanged"


def test_one_instance_decides_nothing() -> None:
    assert verdicts(campaign({}, rounds=1), campaign({}, rounds=10)) == {"open": "undecided"}


def test_a_slower_machine_is_no_regression_of_ratios() -> None:
    before = campaign({"gre": 0.8})
    after = [{**one, "value": one["value"] / 2} for one in campaign({"gre": 0.8}, seed=2)]
    assert verdicts(before, after)["gre"] == "worse"
    assert verdicts(before, after, least=0.03, relative=True)["gre"] == "unchanged"


def test_cells_of_one_campaign_only_are_named() -> None:
    found = compare(frame(campaign({"gre": 0.8})), frame(campaign({"ipip": 0.8})))
    assert [cell.treatment.vpn for cell in found.only_before] == ["gre"]
    assert [cell.treatment.vpn for cell in found.only_after] == ["ipip"]


def test_false_alarms_are_rare_over_all_cells_together() -> None:
    vpns = {f"vpn{number}": 0.5 + number / 20 for number in range(8)}
    alarms = sum(
        "worse" in verdicts(campaign(vpns, 6, 0.03, seed), campaign(vpns, 6, 0.03, 1000 + seed), 0.0).values()
        for seed in range(40)
    )
    assert alarms <= 5
