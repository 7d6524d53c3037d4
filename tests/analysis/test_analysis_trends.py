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
from tunnelbench.analysis.trends import page, unimodal

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
