"""What a background adds, against scipy's paired interval."""

from __future__ import annotations

from typing import Any, cast

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.frames import TRIALS, instance_values
from tunnelbench.analysis.loading import added_by_background

scipy_stats = cast(Any, stats)
PROBE = {"vpn": "open", "suite": "none", "options": "", "transport": "icmp", "ip": "ipv4", "load": "engine"}
DELAYS = st.lists(st.tuples(st.floats(0.01, 10), st.floats(0.01, 500)), min_size=2, max_size=12)


def trials(pairs: list[tuple[float, float]], **changed: object) -> pl.DataFrame:
    """One instance for each pair of a delay alone and one beside a stream."""
    rows = [
        dict.fromkeys(TRIALS)
        | PROBE
        | {"instance": instance, "campaign_round": instance, "runtime": "namespace", "trial": trial}
        | {"status": "ok", "metric": "round_trip_p50", "background": background, "value": value}
        | changed
        for instance, pair in enumerate(pairs)
        for trial, (background, value) in enumerate(zip(("none", "tcp"), pair, strict=True))
    ]
    return pl.DataFrame(rows, schema=TRIALS)


def added(frame: pl.DataFrame) -> list[dict[str, object]]:
    return added_by_background(instance_values(frame)).to_dicts()


# Of scipy, where hypothesis finds differences that are all but equal.
@pytest.mark.filterwarnings("ignore:Precision loss:RuntimeWarning")
@given(DELAYS)
def test_it_is_the_paired_interval_of_student(pairs: list[tuple[float, float]]) -> None:
    (row,) = added(trials(pairs))
    alone, loaded = zip(*pairs, strict=True)
    expected = scipy_stats.ttest_rel(loaded, alone).confidence_interval()
    assert row["background"] == "tcp"
    assert row["n"] == len(pairs)
    assert (row["low"], row["high"]) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_one_instance_has_no_interval() -> None:
    (row,) = added(trials([(0.2, 40.2)]))
    assert row["added"] == pytest.approx(40.0)
    assert (row["low"], row["high"]) == (None, None)


def test_an_instance_without_the_other_half_does_not_count() -> None:
    whole, half = trials([(0.2, 40.2), (0.4, 50.4)]), trials([(0.2, 900.0)], instance=7)
    (row,) = added(pl.concat([whole, half.filter(pl.col("background") == "tcp")]))
    assert (row["n"], row["added"]) == (2, pytest.approx(45.0))


def test_without_a_background_there_is_nothing_to_say() -> None:
    frame = trials([(0.2, 40.2)])
    assert added(frame.filter(pl.col("background") == "none")) == []
