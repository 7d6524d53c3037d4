"""The warm-up of series with known starts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.analysis.warm_up import WarmUp, warm_up


def noisy(means: list[float], noise: float = 0.02, seed: int = 1) -> list[float]:
    return (np.array(means) * np.random.default_rng(seed).normal(1, noise, len(means))).tolist()


@pytest.mark.parametrize("start", [1, 2, 5, 10])
def test_a_slow_start_is_cut(start: int) -> None:
    series = noisy([300.0] * start + [900.0] * (50 - start))
    assert warm_up(series) == WarmUp(start, is_settled=True)


def test_a_burst_from_full_buffers_is_cut() -> None:
    found = warm_up(noisy([2000.0, 1500.0, 1200.0] + [900.0] * 40))
    assert found.is_settled
    assert 2 <= found.samples <= 4


def test_a_steady_series_is_left_whole() -> None:
    cuts = [warm_up(noisy([900.0] * 40, seed=seed)).samples for seed in range(200)]
    assert np.mean([cut > 0 for cut in cuts]) < 0.06


def test_a_series_that_never_settles() -> None:
    assert not warm_up(noisy([float(step) for step in range(10, 60)])).is_settled


def test_mser_5_cuts_whole_batches() -> None:
    found = warm_up(noisy([300.0] * 8 + [900.0] * 92), batch=5)
    assert found == WarmUp(10, is_settled=True)


def test_the_published_criterion() -> None:
    # MSER by its definition: of all cuts, the least sum of squares over the square of what is left.
    series = np.array(noisy([500.0] * 4 + [900.0] * 30))
    errors = [((series[cut:] - series[cut:].mean()) ** 2).sum() / (34 - cut) ** 2 for cut in range(30)]
    assert warm_up(series).samples == int(np.argmin(errors))


@given(st.lists(st.floats(0, 1e4), max_size=60), st.sampled_from([1, 5]))
def test_at_most_half_is_cut(series: list[float], batch: int) -> None:
    assert 0 <= warm_up(series, batch).samples <= len(series) / 2


@given(st.lists(st.floats(1, 1e4), min_size=10, max_size=40), st.sampled_from([0.25, 8.0]))
def test_the_unit_does_not_matter(series: list[float], factor: float) -> None:
    assert warm_up([value * factor for value in series]) == warm_up(series)


@pytest.mark.parametrize("series", [[], [5.0], [5.0] * 9, [5.0] * 50, [0.0] * 50])
def test_short_and_constant_series_are_left_whole(series: list[float]) -> None:
    assert warm_up(series) == WarmUp(0, is_settled=True)
