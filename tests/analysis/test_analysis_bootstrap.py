"""BCa intervals of means, against scipy and a published example."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.bootstrap import mean_intervals

scipy_stats = cast(Any, stats)
samples = st.lists(st.floats(0.5, 1e4), min_size=2, max_size=15)


def only(values: Any, confidence: float = 0.95) -> tuple[float, float]:  # noqa: ANN401
    (interval,) = mean_intervals([np.asarray(values, dtype=np.float64)], confidence)
    assert interval is not None
    return interval


@pytest.mark.parametrize("size", [10, 30])
def test_it_agrees_with_scipy(size: int) -> None:
    for seed in range(5):
        values = np.random.default_rng(seed).lognormal(sigma=0.6, size=size)
        expected = scipy_stats.bootstrap(
            (values,), np.mean, method="BCa", n_resamples=40_000, rng=np.random.default_rng(1)
        ).confidence_interval
        error = values.std(ddof=1) / np.sqrt(size)
        assert only(values) == pytest.approx(tuple(expected), abs=0.3 * error)


def test_the_published_example() -> None:
    # Efron and Tibshirani, table 2.1: days that treated mice survived. BCa of scipy is the judge.
    mice = [94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0]
    expected = scipy_stats.bootstrap(
        (mice,), np.mean, method="BCa", n_resamples=100_000, rng=np.random.default_rng(1)
    ).confidence_interval
    assert only(mice) == pytest.approx(tuple(expected), abs=5)


@given(samples)
def test_it_holds_the_mean_and_stays_in_the_range(values: list[float]) -> None:
    low, high = only(values)
    slack = 1e-9 * max(values)
    assert min(values) - slack <= low <= np.mean(values) + slack
    assert np.mean(values) - slack <= high <= max(values) + slack


@given(samples, st.floats(0.1, 10), st.floats(0, 100))
def test_units_do_not_matter(values: list[float], factor: float, offset: float) -> None:
    if np.std(values) < 1e-6 * np.mean(values):
        return
    low, high = only(values)
    moved = only([value * factor + offset for value in values])
    assert moved == pytest.approx((low * factor + offset, high * factor + offset), rel=1e-6)


def test_samples_do_not_disturb_each_other() -> None:
    generator = np.random.default_rng(2)
    many = [generator.normal(100, 10, size) for size in (1, 3, 3, 7, 3, 0, 7)]
    together = mean_intervals(many)
    assert together == [interval for sample in many for interval in mean_intervals([sample])]
    assert together[0] is None
    assert together[5] is None


def test_equal_values_leave_no_doubt() -> None:
    assert only([7.3] * 5) == (7.3, 7.3)


def test_more_than_one_chunk() -> None:
    many = [np.random.default_rng(seed).normal(size=4) for seed in range(1500)]
    found = mean_intervals(many)
    assert found[-1] == mean_intervals(many[-1:])[0]
