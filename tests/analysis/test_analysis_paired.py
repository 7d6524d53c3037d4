"""Paired differences, Holm, equivalence and power, against scipy and statsmodels."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]
from statsmodels.stats import multitest, power, weightstats  # pyright: ignore

from tunnelbench.analysis.equivalence import equivalence_p_value
from tunnelbench.analysis.holm import holm
from tunnelbench.analysis.paired import difference
from tunnelbench.analysis.power import power_of, rounds_needed

differences = st.lists(st.floats(-3, 3).map(lambda value: round(value, 6)), min_size=2, max_size=20)
scipy_stats = cast(Any, stats)
of_statsmodels = cast(Any, power).TTestPower()


@given(differences)
def test_the_t_test_is_scipys(values: list[float]) -> None:
    found = difference(values)
    if found.standard_deviation == 0:
        assert found.p_value == (1.0 if found.mean == 0 else 0.0)
        return
    expected = scipy_stats.ttest_1samp(values, 0)
    assert found.p_value == pytest.approx(expected.pvalue, rel=1e-6, abs=1e-12)
    low, high = expected.confidence_interval(0.95)
    assert found.interval() == pytest.approx((math.exp(low), math.exp(high)), rel=1e-6)


@given(differences)
def test_turned_round_everything_is_mirrored(values: list[float]) -> None:
    found, turned = difference(values), difference([-value for value in values])
    assert turned.ratio == pytest.approx(1 / found.ratio)
    assert turned.p_value == pytest.approx(found.p_value, abs=1e-12)
    low, high = found.interval() or (1, 1)
    assert turned.interval() == pytest.approx((1 / high, 1 / low))


def test_one_round_has_no_interval() -> None:
    found = difference([0.5])
    assert (found.n, found.interval(), found.p_value, found.effect_size) == (1, None, None, None)
    assert equivalence_p_value(found, 0.5) == 1
    with pytest.raises(ValueError, match="no round"):
        difference([])


def test_hedges_correction() -> None:
    # J(9) = 0.9139 (L. V. Hedges and I. Olkin, Statistical Methods for Meta-Analysis, 1985, table 2: df 9).
    values = np.random.default_rng(4).normal(0.2, 0.1, 10)
    uncorrected = values.mean() / values.std(ddof=1)
    effect = difference(values).effect_size
    assert effect is not None
    assert effect / uncorrected == pytest.approx(0.9139, abs=6e-4)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_holm_is_that_of_statsmodels(p_values: list[float]) -> None:
    expected = cast(Any, multitest).multipletests(p_values, method="holm")[1]
    assert holm(p_values) == pytest.approx(expected)


@given(differences, st.floats(0.01, 0.5))
def test_equivalence_is_that_of_statsmodels(values: list[float], margin: float) -> None:
    found = difference(values)
    if not found.standard_deviation or found.standard_deviation < 1e-9:
        return
    edge = math.log1p(margin)
    p_value = cast(Any, weightstats).ttost_paired(np.array(values), np.zeros(len(values)), -edge, edge)[0]
    assert equivalence_p_value(found, margin) == pytest.approx(p_value, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("effect", [0.2, 0.5, 0.8, 1.5, 3.0])
@pytest.mark.parametrize("rounds", [2, 5, 10, 40])
def test_power_is_that_of_statsmodels(effect: float, rounds: int) -> None:
    expected = float(of_statsmodels.power(effect, rounds, 0.05))
    if math.isnan(expected):  # statsmodels has no answer next to certainty
        expected = 1.0
    assert power_of(effect, rounds) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("effect", [0.1, 0.3, 0.5, 1.0, 2.0])
def test_rounds_needed_are_those_of_statsmodels(effect: float) -> None:
    expected = of_statsmodels.solve_power(effect_size=effect, alpha=0.05, power=0.8)
    assert rounds_needed(effect * 0.07, 0.07) == math.ceil(float(np.squeeze(expected)) - 1e-9)


def test_rounds_needed_at_the_ends() -> None:
    assert rounds_needed(0.0, 0.1) is None
    assert rounds_needed(0.1, 0.0) == 2
    assert rounds_needed(1e-6, 1.0) is None
