"""Cells over their instances and relative to their baselines."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from analysis_trials import Row, campaigns, frame, row
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.bootstrap import mean_intervals
from tunnelbench.analysis.frames import CELL, instance_values
from tunnelbench.analysis.intervals import median_interval
from tunnelbench.analysis.summary import summarise

COLUMNS = [
    *CELL,
    "metric",
    "n_instances",
    "n_trials",
    "median",
    "mean",
    "standard_deviation",
    "coefficient_of_variation",
    "low",
    "high",
    "mean_low",
    "mean_high",
    "ratio",
    "ratio_low",
    "ratio_high",
    "mean_ratio",
    "mean_ratio_low",
    "mean_ratio_high",
    "n_paired",
]


def cell(summary: pl.DataFrame, **levels: object) -> dict[str, Any]:
    (found,) = summary.filter(**levels).iter_rows(named=True)
    return found


def test_the_columns() -> None:
    assert summarise(frame([row("open", 1, 900.0)])).columns == COLUMNS
    assert summarise(frame([])).columns == COLUMNS
    assert summarise(frame([])).is_empty()


def test_trials_of_one_instance_are_averaged_first() -> None:
    rows = [row("ipip", 1, value, trial=number) for number, value in enumerate((100.0, 200.0, 300.0))]
    rows.append(row("ipip", 2, 400.0))
    found = cell(summarise(frame(rows)), vpn="ipip")
    assert (found["n_instances"], found["n_trials"]) == (2, 4)
    assert found["median"] == found["mean"] == 300.0
    assert found["standard_deviation"] == pytest.approx(math.sqrt(2) * 100)
    assert found["coefficient_of_variation"] == pytest.approx(math.sqrt(2) / 3)
    assert (found["low"], found["high"]) == (200.0, 400.0)


def test_means_have_intervals_only_where_they_are_wanted() -> None:
    trials = frame([row("ipip", number, value) for number, value in enumerate((100.0, 200.0, 300.0))])
    wanted = cell(summarise(trials, means_of={"throughput"}), vpn="ipip")
    unwanted = cell(summarise(trials, means_of=()), vpn="ipip")
    assert wanted["mean_low"] == cell(summarise(trials), vpn="ipip")["mean_low"]
    assert unwanted["mean_low"] is None
    assert unwanted["mean"] == wanted["mean"]
    assert unwanted["low"] == wanted["low"]


def test_one_instance_has_no_spread_and_no_interval() -> None:
    found = cell(summarise(frame([row("open", 1, 900.0)])), vpn="open")
    assert found["median"] == found["mean"] == 900.0
    assert found["ratio"] == 1.0
    for column in (
        "standard_deviation",
        "coefficient_of_variation",
        "low",
        "high",
        "ratio_low",
        "ratio_high",
    ):
        assert found[column] is None


def test_void_trials_and_missing_values_do_not_count() -> None:
    rows = [
        row("ipip", 1, 100.0),
        row("ipip", 1, 5.0, status="void", trial=2),
        row("ipip", 2, None, status="void", metric=None),
        row("ipip", 3, None),
    ]
    found = cell(summarise(frame(rows)), vpn="ipip")
    assert (found["n_instances"], found["n_trials"], found["median"]) == (1, 1, 100.0)


def test_drift_cancels_in_the_ratio() -> None:
    machine = {1: 1.0, 2: 0.5, 3: 0.25}
    rows = [row("open", number, 800 * speed) for number, speed in machine.items()]
    rows += [row("ipip", number, 600 * speed) for number, speed in machine.items()]
    found = cell(summarise(frame(rows)), vpn="ipip")
    assert (found["ratio"], found["ratio_low"], found["ratio_high"], found["n_paired"]) == (
        0.75,
        0.75,
        0.75,
        3,
    )
    assert (found["low"], found["high"]) == (150.0, 600.0)


@pytest.mark.parametrize(
    "different",
    [
        {"campaign_round": 2},
        {"runtime": "kernel"},
        {"gateway_os": "trixie"},
        {"host_os": "trixie"},
        {"mtu": 9000},
        {"transport": "udp"},
        {"ip": "ipv6"},
        {"payload_bytes": 64},
        {"rate": "max"},
        {"direction": "reverse"},
        {"load": "iperf3"},
        {"metric": "loss"},
        {"status": "void"},
        {"vpn": "gre"},
        {"value": 0.0},
    ],
)
def test_only_the_baseline_of_the_same_round_and_place_serves(different: dict[str, object]) -> None:
    rows = [row("ipip", 1, 600.0), {**row("open", 1, 800.0), **different}]
    found = cell(summarise(frame(rows)), vpn="ipip", metric="throughput")
    assert (found["ratio"], found["n_paired"]) == (None, 0)
    assert found["median"] == 600.0


def test_rounds_without_a_baseline_are_left_out_of_the_ratio_alone() -> None:
    rows = [row("open", 1, 800.0), row("ipip", 1, 400.0), row("ipip", 2, 700.0)]
    found = cell(summarise(frame(rows)), vpn="ipip")
    assert (found["median"], found["ratio"], found["n_instances"], found["n_paired"]) == (550.0, 0.5, 2, 1)


def test_runtimes_are_apart() -> None:
    rows = [
        row("open", 1, 8000.0),
        row("open", 1, 900.0, runtime="kernel", instance=1),
        row("ipip", 1, 4000.0),
        row("ipip", 1, 810.0, runtime="kernel", instance=2),
    ]
    summary = summarise(frame(rows))
    assert cell(summary, vpn="ipip", runtime="namespace")["ratio"] == 0.5
    assert cell(summary, vpn="ipip", runtime="kernel")["ratio"] == 0.9


def test_metrics_without_spread_or_baseline_value() -> None:
    rows = [row(vpn, number, 0.0, metric="loss") for vpn in ("open", "ipip") for number in (1, 2)]
    found = cell(summarise(frame(rows)), vpn="ipip")
    assert (found["median"], found["low"], found["high"]) == (0.0, 0.0, 0.0)
    assert found["coefficient_of_variation"] is None
    assert found["ratio"] is None


def test_against_scipy_and_numpy() -> None:
    values = [float(value) for value in np.random.default_rng(5).normal(500, 50, 9)]
    found = cell(
        summarise(frame([row("ipip", number, value) for number, value in enumerate(values)])), vpn="ipip"
    )
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["median"] == pytest.approx(np.median(values))
    assert found["standard_deviation"] == pytest.approx(np.std(values, ddof=1))
    variation: float = stats.variation(values, ddof=1)  # pyright: ignore[reportUnknownMemberType, reportAssignmentType]
    assert found["coefficient_of_variation"] == pytest.approx(variation)
    assert (found["low"], found["high"]) == median_interval(values)
    assert (found["mean_low"], found["mean_high"]) == mean_intervals([np.array(values)])[0]


@given(campaigns())
def test_the_baseline_is_its_own_measure(rows: list[Row]) -> None:
    baselines = summarise(frame(rows)).filter(vpn="open")
    assert baselines["ratio"].to_list() == [1.0] * len(baselines)
    assert set(baselines["ratio_low"].drop_nulls()) | set(baselines["ratio_high"].drop_nulls()) <= {1.0}


@given(campaigns())
def test_points_lie_in_their_intervals(rows: list[Row]) -> None:
    summary = summarise(frame(rows)).drop_nulls("low")
    for low, point, high in (("low", "median", "high"), ("ratio_low", "ratio", "ratio_high")):
        assert (summary[low] <= summary[point]).all()
        assert (summary[point] <= summary[high]).all()


@given(campaigns(), st.data())
def test_the_order_of_rows_does_not_matter(rows: list[Row], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(rows))
    assert_frame_equal(summarise(frame(shuffled)), summarise(frame(rows)), check_row_order=False)


@given(campaigns(), st.sampled_from((0.25, 2.0, 1024.0)))
def test_another_unit_scales_all_but_ratios(rows: list[Row], factor: float) -> None:
    scaled = summarise(frame([{**row, "value": row["value"] * factor} for row in rows]))
    expected = summarise(frame(rows)).with_columns(
        pl.col("median", "mean", "standard_deviation", "low", "high", "mean_low", "mean_high") * factor
    )
    assert_frame_equal(scaled, expected)


@given(campaigns())
def test_every_instance_is_counted_once(rows: list[Row]) -> None:
    trials = frame(rows)
    summary = summarise(trials)
    assert summary["n_trials"].sum() == trials.height
    assert summary["n_instances"].sum() == instance_values(trials).height
    assert (summary["n_paired"] == summary["n_instances"]).all()
