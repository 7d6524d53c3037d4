"""Tiers of tunnels and comparisons of every two, against published numbers and known truths."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import polars as pl
import pytest
from findings_campaigns import campaign, cells
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.comparison import COMPARISONS, paired_comparisons
from tunnelbench.analysis.frames import instance_values
from tunnelbench.analysis.groups import GROUPS, groups, scott_knott

scipy_stats = cast(Any, stats)
TUNNELS = [
    ("ipsec-manual", "aes128-sha1"),
    ("openvpn", "aes-256-gcm"),
    ("ssh-vpn", "aes128-ctr"),
    ("open", "none"),
]
SPEED = {"ipsec-manual": 400.0, "openvpn": 101.0, "ssh-vpn": 100.0, "open": 900.0}


def measured(rounds: int = 8, noise: float = 0.03) -> pl.DataFrame:
    trials = campaign(
        cells(TUNNELS, transport=["tcp", "udp"]), lambda cell: SPEED[cell["vpn"]], rounds, noise
    )
    return instance_values(trials)


def test_tunnels_that_can_not_be_told_apart_share_a_tier() -> None:
    found = groups(measured())
    for transport in ("tcp", "udp"):
        here = found.filter(pl.col("transport") == transport)
        assert dict(zip(here["vpn"], here["tier"], strict=True)) == {
            "open": 1,
            "ipsec-manual": 2,
            "openvpn": 3,
            "ssh-vpn": 3,
        }
    assert found.filter(pl.col("vpn") == "open")["mean"][0] == pytest.approx(900, rel=0.5)


def test_less_is_better_turns_the_tiers_round() -> None:
    found = groups(measured(), less_is_better=True)
    assert found["vpn"][0] in ("openvpn", "ssh-vpn")
    assert found.filter(pl.col("vpn") == "open")["tier"].to_list() == [3, 3]


def test_nothing_measured() -> None:
    empty = measured().clear()
    assert groups(empty).schema == GROUPS
    assert paired_comparisons(empty).schema == COMPARISONS


def test_equal_means_are_split_as_rarely_as_promised() -> None:
    generator = np.random.default_rng(6)
    split = [max(scott_knott(generator.normal(size=(10, 6)))) > 1 for _ in range(400)]
    assert np.mean(split) < 0.09


@given(st.integers(2, 8), st.integers(2, 8), st.integers(0, 10_000))
def test_tiers_follow_the_means(rounds: int, columns: int, seed: int) -> None:
    values = np.random.default_rng(seed).normal(scale=0.1, size=(rounds, columns)) + np.arange(columns) % 3
    tiers = scott_knott(values)
    order: list[int] = np.argsort(-values.mean(axis=0), kind="stable").tolist()
    in_order = [tiers[index] for index in order]
    assert in_order == sorted(in_order)
    assert in_order[0] == 1
    assert set(in_order) == set(range(1, max(in_order) + 1))


def test_a_missing_value_does_not_move_a_tier() -> None:
    values = np.random.default_rng(1).normal(scale=0.01, size=(6, 3)) + np.array([0.0, 1.0, 1.0])
    values += np.arange(6)[:, None]  # rounds differ by far more than tunnels
    values[5, 1] = np.nan
    assert scott_knott(values) == [2, 1, 1]


def test_one_round_makes_one_tier() -> None:
    assert scott_knott([[1.0, 2.0, 3.0]]) == [1, 1, 1]


def test_every_two_tunnels_are_compared_at_each_place() -> None:
    found = paired_comparisons(measured(rounds=6))
    assert found.height == 2 * 6
    pair = found.filter(
        pl.col("transport") == "tcp", pl.col("vpn") == "ipsec-manual", pl.col("vpn_other") == "openvpn"
    ).row(0, named=True)
    assert pair["n"] == 6
    assert pair["low"] < pair["ratio"] < pair["high"]
    assert pair["ratio"] == pytest.approx(400 / 101, rel=0.05)
    assert pair["effect_size"] > 5
    assert pair["p_value"] <= pair["p_holm"] < 0.001
    assert pair["rounds_needed"] is None
    close = found.filter(pl.col("vpn") == "openvpn", pl.col("vpn_other") == "ssh-vpn")
    assert (close["p_value"] > 0.01).any()


def test_one_round_has_ratios_alone() -> None:
    found = paired_comparisons(measured(rounds=1))
    assert found["ratio"].null_count() == 0
    assert found["p_holm"].null_count() == found.height
