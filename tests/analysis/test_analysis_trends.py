"""Tests of trends, unimodal fits and rank correlations, against worked examples, enumeration and scipy."""

from __future__ import annotations

import math
from itertools import permutations
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.correlation import rank_correlation
from tunnelbench.analysis.trends import jonckheere, page, unimodal

scipy_stats = cast(Any, stats)


def test_pages_test_is_exact_for_few_blocks() -> None:
    blocks = np.array([[1.0, 2.0, 3.0], [1.0, 3.0, 2.0], [1.0, 2.0, 3.0]])
    observed = float((blocks * [1, 2, 3]).sum())
    orders = [float(np.dot(order, [1, 2, 3])) for order in permutations([1, 2, 3])]
    sums = [a + b + c for a in orders for b in orders for c in orders]
    assert page(blocks) == pytest.approx(np.mean([total >= observed for total in sums]))


def test_pages_test_without_blocks_or_levels_finds_nothing() -> None:
    assert page(np.empty((0, 4))) == 1
    assert page([[1.0, 2.0]]) == 1


def test_jonckheeres_moments_are_those_of_every_arrangement() -> None:
    def statistic(values: tuple[int, ...]) -> float:
        groups = values[:2], values[2:4], values[4:]
        pairs = [(groups[0], groups[1]), (groups[0], groups[2]), (groups[1], groups[2])]
        return sum((y > x) + (y == x) / 2 for lower, upper in pairs for x in lower for y in upper)

    for values in ((1, 2, 3, 4, 5, 6, 7), (1, 1, 2, 3, 3, 3, 4)):
        everywhere = np.array([statistic(order) for order in permutations(values)])
        z = (statistic(values) - everywhere.mean()) / everywhere.std()
        assert jonckheere([values[:2], values[2:4], values[4:]]) == pytest.approx(scipy_stats.norm.sf(z))


@given(st.lists(st.lists(st.integers(0, 8), min_size=2, max_size=8), min_size=2, max_size=2))
def test_with_two_groups_jonckheeres_is_mann_and_whitneys(groups: list[list[int]]) -> None:
    if len({value for group in groups for value in group}) == 1:
        assert jonckheere(groups) == 1
        return
    expected = scipy_stats.mannwhitneyu(
        groups[1], groups[0], alternative="greater", method="asymptotic", use_continuity=False
    )
    assert jonckheere(groups) == pytest.approx(expected.pvalue, rel=1e-6)


def test_more_groups_with_ties_agree_with_permutations() -> None:
    generator = np.random.default_rng(8)
    groups = [[1, 2, 2, 3], [2, 3, 3, 1], [3, 2, 4, 4]]
    everything = np.concatenate(groups).astype(float)

    def statistic(values: Any) -> float:  # noqa: ANN401
        a, b, c = values[:4], values[4:8], values[8:]
        pairs = [(a, b), (a, c), (b, c)]
        return sum(float((y > x) + (y == x) / 2) for lower, upper in pairs for x in lower for y in upper)

    observed = statistic(everything)
    shuffled = np.array([statistic(generator.permutation(everything)) for _ in range(4000)])
    middle = float((shuffled > observed).mean() + (shuffled == observed).mean() / 2)
    assert jonckheere(groups) == pytest.approx(middle, abs=0.02)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=12))
def test_a_unimodal_fit_explains_a_share(values: list[float]) -> None:
    found = unimodal(values)
    assert 0 <= found.peak < len(values)
    assert -1e-9 <= found.explained <= 1 + 1e-9


@given(st.lists(st.floats(0, 10), min_size=1, max_size=6), st.lists(st.floats(0, 10), min_size=0, max_size=6))
def test_what_rises_and_falls_is_explained_wholly(rise: list[float], fall: list[float]) -> None:
    top = 11.0
    found = unimodal([*sorted(rise), top, *sorted(fall, reverse=True)])
    assert found.peak == len(rise)
    assert found.explained == pytest.approx(1)


def test_rank_correlations_are_those_of_scipy() -> None:
    first, second = [1, 2, 3, 4, 5, 6, 7], [2.0, 1.0, 3.0, 5.0, 4.0, 7.0, 6.0]
    found = rank_correlation(first, second)
    assert found.tau == pytest.approx(scipy_stats.kendalltau(first, second).statistic)
    assert found.rho == pytest.approx(scipy_stats.spearmanr(first, second).statistic)
    # Fisher's z of tau with variance 0.437 / (n - 4), by hand.
    half = 1.959964 * math.sqrt(0.437 / 3)
    assert found.tau_interval is not None
    assert found.tau_interval == pytest.approx(
        (math.tanh(math.atanh(found.tau) - half), math.tanh(math.atanh(found.tau) + half)), rel=1e-5
    )
    assert found.rho_interval is not None
    assert found.rho_interval.low < found.rho < found.rho_interval.high


def test_equal_and_reversed_orders() -> None:
    assert rank_correlation(range(6), range(6)).tau == pytest.approx(1)
    assert rank_correlation(range(6), range(0, -6, -1)).rho == pytest.approx(-1)
    assert rank_correlation(range(6), range(6)).tau_interval == pytest.approx((1, 1))
    assert rank_correlation([1, 2, 3], [3, 1, 2]).tau_interval is None
