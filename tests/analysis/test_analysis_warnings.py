"""Doubts about results."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from analysis_trials import Row, campaigns, frame, row
from hypothesis import given

from tunnelbench.analysis.checks import (
    MOST_TIMES,
    baseline_drifts,
    missing_baselines,
    slow_senders,
    too_few_instances,
    trend_of,
    unstable_cells,
    warnings_about,
)
from tunnelbench.analysis.frames import instance_values
from tunnelbench.analysis.summary import summarise
from tunnelbench.analysis.warnings import MeasurementWarning, MissingBaseline
from tunnelbench.study.quantity import SendingRate


def rounds_of(vpn: str, *values: float, **changed: object) -> list[Row]:
    return [row(vpn, number, value, **changed) for number, value in enumerate(values, 1)]


def doubts_about(trials: pl.DataFrame) -> tuple[MeasurementWarning, ...]:
    values = instance_values(trials)
    return warnings_about(values, values, summarise(trials))


def test_a_good_campaign_raises_no_doubt() -> None:
    steady = (100.0, 101.0, 99.0, 100.5, 99.5, 100.2)
    trials = frame([*rounds_of("open", *steady), *rounds_of("ipip", *steady)])
    assert doubts_about(trials) == ()


def test_an_unstable_cell() -> None:
    summary = summarise(frame([*rounds_of("open", 100.0, 101.0), *rounds_of("ipip", 100.0, 150.0)]))
    (warning,) = unstable_cells(summary)
    assert warning.cell.treatment.vpn == "ipip"
    assert warning.coefficient_of_variation == pytest.approx(0.283, abs=1e-3)
    assert warning.message == (
        "ipip (namespace, bookworm, MTU 1500), TCP over IPv4, 128 KiB writes, forward, engine: throughput "
        "varies by 28 % of its mean from one instance to the next, more than 10 %"
    )
    assert list(unstable_cells(summary, bound=0.3)) == []


def test_spread_of_other_metrics_is_expected() -> None:
    assert list(unstable_cells(summarise(frame(rounds_of("open", 1.0, 50.0, metric="jitter"))))) == []


def test_too_few_instances_are_counted_by_how_many_there_are() -> None:
    rows = [
        *rounds_of("open", *[100.0] * 6),
        *rounds_of("ipip", *[100.0] * 3),
        *rounds_of("gre", *[100.0] * 3),
        *rounds_of("ssh-vpn", 100.0),
    ]
    one, three = too_few_instances(summarise(frame(rows)))
    assert (one.n_cells, one.n_instances, one.n_needed) == (1, 1, 6)
    assert one.message == "1 cell has one instance only, which has no interval"
    assert (three.n_cells, three.n_instances) == (2, 3)
    assert three.message == (
        "2 cells have only 3 instances: their whole range holds the true median "
        "in 75 % of campaigns, not in 95 %"
    )
    assert "at least 6 rounds" in three.advice


def test_rounds_without_their_baseline() -> None:
    rows = [
        *rounds_of("open", 100.0, 100.0, 100.0),
        *rounds_of("ipip", 90.0, 90.0, 90.0),
        *rounds_of("gre", 80.0, 80.0, runtime="kernel"),
        row("ipip", 2, 50.0, transport="udp", rate="max"),
        row("open", 2, 50.0, transport="udp", rate="max", status="void"),
    ]
    kernel, namespace = missing_baselines(instance_values(frame(rows)))
    assert kernel == MissingBaseline("kernel", "bookworm", "bookworm", 1500, (1, 2))
    assert namespace == MissingBaseline("namespace", "bookworm", "bookworm", 1500, (2,))
    assert kernel.message.startswith("rounds 1, 2: some results have no plain-IP baseline (kernel, bookworm")
    assert namespace.message.startswith("round 2: ")


@given(campaigns())
def test_complete_rounds_lack_no_baseline(rows: list[Row]) -> None:
    assert list(missing_baselines(instance_values(frame(rows)))) == []


def test_a_baseline_that_falls_steadily() -> None:
    (warning,) = baseline_drifts(
        instance_values(frame(rounds_of("open", 100.0, 98.0, 95.0, 93.0, 90.0, 88.0)))
    )
    assert warning.change == pytest.approx(-12.5 / 94, abs=0.01)
    assert "throughput falls by 13 % from the first round to the last" in warning.message
    assert "ratios" in warning.advice


@pytest.mark.parametrize(
    ("vpn", "values"),
    [
        ("open", (100.0, 90.0, 105.0, 95.0, 110.0, 91.0)),  # no trend
        ("open", (100.0, 99.9, 99.8, 99.7, 99.6, 99.5)),  # a small one
        ("open", (100.0, 80.0, 60.0, 40.0)),  # four rounds tell nothing
        ("open", (100.0,)),
        ("open", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        ("ipip", (100.0, 98.0, 95.0, 93.0, 90.0, 88.0)),  # not a baseline
    ],
)
def test_no_drift(vpn: str, values: tuple[float, ...]) -> None:
    assert list(baseline_drifts(instance_values(frame(rounds_of(vpn, *values))))) == []


def test_a_sender_that_misses_its_rate() -> None:
    udp = {"transport": "udp", "payload_bytes": 1400, "metric": "offered"}
    rows = [
        *rounds_of("ipip", 90.0, 95.0, 91.0, **udp, rate="100 Mbit/s"),
        *rounds_of("gre", 99.0, 99.9, 99.5, **udp, rate="100 Mbit/s"),
        *rounds_of("open", 90.0, **udp, rate="max"),
    ]
    (warning,) = slow_senders(summarise(frame(rows)))
    assert warning.cell.treatment.vpn == "ipip"
    assert warning.cell.point.rate == SendingRate(100_000_000)
    assert (warning.asked, warning.offered) == (100.0, 91.0)
    assert "asked for 100 Mbit/s, the sender offered 91 Mbit/s" in warning.message


def test_every_warning_has_its_own_kind_and_advice() -> None:
    udp = {"transport": "udp", "payload_bytes": 1400}
    rows = [
        *rounds_of("open", 100.0, 90.0, 80.0, 70.0, 60.0),
        *rounds_of("ipip", 100.0, 50.0),
        *rounds_of("gre", 10.0, runtime="kernel"),
        *rounds_of("ipip", 10.0, **udp, metric="offered", rate="100 Mbit/s"),
    ]
    trials = frame(rows)
    warnings = doubts_about(trials)
    assert {warning.kind for warning in warnings} == {
        "too-few-instances",
        "missing-baseline",
        "baseline-drift",
        "unstable-cell",
        "slow-sender",
    }
    assert all(warning.message and warning.advice.endswith(".") for warning in warnings)


def test_no_results_raise_no_doubt() -> None:
    assert doubts_about(frame([])) == ()


def test_the_trend_of_known_values() -> None:
    # Sen's slope is 2 a step. Ten values in order have tau = 1; of 10! orders two are as extreme.
    trend = trend_of(list(range(10)), [2.0 * step + 1 for step in range(10)])
    assert trend is not None
    assert (trend.change, trend.p_value) == pytest.approx((18 / 10, 2 / 3_628_800))
    assert trend_of([1], [5.0]) is None
    # One disturbed round doesn't make a trend.
    outlier = trend_of([1, 2, 3, 4, 5, 6], [100.0, 100.1, 99.9, 100.0, 99.95, 10.0])
    assert outlier is not None
    assert abs(outlier.change) < 0.05


def test_the_trend_of_many_values_is_that_of_their_neighbours() -> None:
    times = np.arange(100_000)
    trend = trend_of(times, 100 + times / 1000 + np.random.default_rng(1).normal(size=times.size))
    assert trend is not None
    assert trend.times.size == MOST_TIMES
    assert trend.change == pytest.approx(100 / 150, rel=0.01)
    assert trend.p_value < 1e-6
