"""The bootstrap interval of the median, against published figures, enumeration and resampling."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.analysis.intervals import attainable_confidence, median_interval, median_intervals
from tunnelbench.analysis.samples import Interval, samples_of

MOUSE_TREATMENT = [94.0, 197.0, 16.0, 38.0, 99.0, 141.0, 23.0]
"""Days that treated mice survived: Efron and Tibshirani, An Introduction to the Bootstrap, table 2.1."""

samples = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30)


def every_resample(values: list[float]) -> np.ndarray[Any, np.dtype[np.float64]]:
    draws = np.indices((len(values),) * len(values)).reshape(len(values), -1)
    return np.sort(np.median(np.array(values)[draws], axis=0))


def test_the_published_example() -> None:
    medians = every_resample(MOUSE_TREATMENT)
    assert np.std(medians) == pytest.approx(
        37.83, abs=0.005
    )  # table 2.2, standard error for infinite resamples
    assert median_interval(MOUSE_TREATMENT) == Interval(23.0, 141.0)
    assert float(np.mean(medians < 23)) < 0.025 < float(np.mean(medians <= 23))


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95])
def test_it_is_the_interval_of_every_resample(count: int, confidence: float) -> None:
    values = [float(value) for value in np.random.default_rng(count).normal(size=count)]
    medians = every_resample(values)
    tail = int(np.ceil((1 - confidence) / 2 * medians.size - 1e-6))
    interval = median_interval(values, confidence)
    assert interval == pytest.approx((medians[tail - 1], medians[-tail]))


@pytest.mark.parametrize("count", [8, 11, 20, 41])
def test_it_agrees_with_resampling(count: int) -> None:
    values = np.random.default_rng(count).lognormal(size=count)
    interval = median_interval(values)
    assert interval is not None
    medians = np.median(np.random.default_rng(1).choice(values, (20_000, count)), axis=1)
    # The distribution has steps, and a tail may end at the edge of one.
    for end, share in ((interval.low, 0.025), (interval.high, 0.975)):
        near, far = np.quantile(medians, [share - 0.005, share + 0.005])
        assert near <= end * (1 + 1e-9)
        assert end <= far * (1 + 1e-9)


def test_one_value_has_no_interval() -> None:
    assert median_interval([5.0]) is None
    assert median_interval([]) is None


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_few_values_span_their_whole_range(count: int) -> None:
    values = [float(value) for value in range(count)]
    assert median_interval(values) == Interval(0.0, count - 1.0)
    assert attainable_confidence(count) < 0.95


def test_equal_values_leave_no_doubt() -> None:
    assert median_interval([7.0] * 4) == Interval(7.0, 7.0)


def test_many_values() -> None:
    # Normal approximation: ranks n/2 -+ 1.96 sqrt(n)/2 of 0..1199.
    interval = median_interval(np.arange(1200))
    assert interval == pytest.approx((599.5 - 33.9, 599.5 + 33.9), abs=1.5)


@given(samples, st.randoms(use_true_random=False))
def test_the_order_of_values_does_not_matter(values: list[float], random: Any) -> None:  # noqa: ANN401
    shuffled = list(values)
    random.shuffle(shuffled)
    assert median_interval(shuffled) == median_interval(values)


@given(samples)
def test_it_holds_the_median_and_stays_in_the_range(values: list[float]) -> None:
    interval = median_interval(values)
    assert interval is not None
    assert min(values) <= interval.low <= np.median(values) <= interval.high <= max(values)


@given(samples)
def test_mirrored_values_have_the_mirrored_interval(values: list[float]) -> None:
    interval, mirrored = median_interval(values), median_interval([-value for value in values])
    assert interval is not None
    assert mirrored is not None
    assert (mirrored.low, mirrored.high) == pytest.approx((-interval.high, -interval.low))


@given(samples, st.floats(0.01, 0.9))
def test_more_confidence_is_never_narrower(values: list[float], confidence: float) -> None:
    narrow, wide = median_interval(values, confidence), median_interval(values, confidence + 0.09)
    assert narrow is not None
    assert wide is not None
    assert wide.low <= narrow.low
    assert narrow.high <= wide.high


def test_it_keeps_its_promise() -> None:
    generator = np.random.default_rng(3)
    for count in (3, 5, 10, 20):
        samples = generator.lognormal(size=(2000, count))  # whose median is 1
        intervals = [median_interval(sample) for sample in samples]
        covered = np.mean(
            [interval is not None and interval.low <= 1 <= interval.high for interval in intervals]
        )
        expected = min(attainable_confidence(count), 0.95)
        assert covered == pytest.approx(expected, abs=0.035)


@pytest.mark.parametrize(
    ("count", "confidence"), [(0, 0), (1, 0), (2, 0.5), (3, 0.75), (5, 0.9375), (6, 0.96875)]
)
def test_the_attainable_confidence(count: int, confidence: float) -> None:
    assert attainable_confidence(count) == confidence


@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=9), max_size=20))
def test_many_samples_have_the_intervals_that_each_has_alone(many: list[list[float]]) -> None:
    column = pl.Series([sorted(sample) for sample in many], dtype=pl.List(pl.Float64))
    together = median_intervals(samples_of(column))
    assert together == [median_interval(sample) for sample in many]
