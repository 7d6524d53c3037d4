"""Analysis of variance, against statsmodels and on campaigns with known effects."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pandas  # pyright: ignore
import polars as pl
import pytest
import statsmodels.formula.api as formulas  # pyright: ignore
from findings_campaigns import Cell, campaign, cells
from statsmodels.stats import anova as judge  # pyright: ignore

from tunnelbench.analysis.effects import anova, effects
from tunnelbench.analysis.frames import instance_values


def factorial(missing: float, seed: int) -> pl.DataFrame:
    generator = np.random.default_rng(seed)
    rows = [
        {"a": f"a{a}", "b": f"b{b}", "c": f"c{c}", "y": a + 0.5 * b + 0.7 * (a == b) + generator.normal()}
        for a in range(3)
        for b in range(4)
        for c in range(2)
        for _ in range(3)
        if generator.random() > missing
    ]
    return pl.DataFrame(rows)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_it_is_type_two_of_statsmodels(missing: float, seed: int) -> None:
    frame = factorial(missing, seed)
    terms = [("a",), ("b",), ("c",), ("a", "b"), ("a", "c")]
    found = anova(frame, "y", terms)
    model = (
        cast(Any, formulas)
        .ols(
            "y ~ C(a) + C(b) + C(c) + C(a):C(b) + C(a):C(c)", pandas.DataFrame(frame.to_dict(as_series=False))
        )
        .fit()
    )
    expected = cast(Any, judge).anova_lm(model, typ=2)
    for effect in found.effects:
        row = expected.loc[":".join(f"C({name})" for name in effect.factors)]
        assert effect.sum_of_squares == pytest.approx(row["sum_sq"], rel=1e-8)
        assert effect.freedom == row["df"]
        assert effect.f == pytest.approx(row["F"], rel=1e-8)
        assert effect.p_value == pytest.approx(row["PR(>F)"], rel=1e-6)
    assert found.residual_freedom == expected.loc["Residual"]["df"]


def test_shares_of_a_complete_design_add_up_to_one() -> None:
    found = anova(factorial(0, 5), "y", [("a",), ("b",), ("c",), ("a", "b")])
    assert sum(effect.share for effect in found.effects) + found.residual_share == pytest.approx(1)


def test_what_a_campaign_varied() -> None:
    tunnels = [("ipsec-manual", "aes128-sha1"), ("openvpn", "aes-256-gcm"), ("open", "none")]
    speeds = {"ipsec-manual": 400.0, "openvpn": 100.0, "open": 900.0}

    def truth(cell: Cell) -> float:
        slow = cell["vpn"] == "openvpn" and cell["transport"] == "udp"
        return speeds[cell["vpn"]] * (0.5 if slow else 1.0) * (1.1 if cell["gateway_os"] == "trixie" else 1.0)

    varied = cells(tunnels, gateway_os=["bookworm", "trixie"], transport=["tcp", "udp"])
    for number, cell in enumerate(varied):
        cell["instance"] = number // 2
    trials = campaign(varied, truth, rounds=6)
    numbered = trials.with_columns(pl.col("instance") + 1000 * pl.col("campaign_round"))
    found = effects(instance_values(numbered))
    assert found is not None
    shares = {effect.factors: effect.share for effect in found.effects}
    assert max(shares, key=lambda factors: shares[factors]) == ("tunnel",)
    assert shares["tunnel", "transport"] > 0.01
    assert shares["tunnel", "gateway_os"] < 0.001
    p_values = {effect.factors: effect.p_value for effect in found.effects}
    assert (p_values["gateway_os",] or 0) < 0.001
    assert ("campaign_round",) in p_values
    assert sum(shares.values()) + found.residual_share == pytest.approx(1, abs=0.03)


def test_hard_factors_are_tested_by_instances() -> None:
    # Instances differ by 20 %, points inside one by nothing: twelve points in three instances are three.
    generator = np.random.default_rng(2)
    varied = cells(
        [("ipsec-manual", "aes128-sha1")], gateway_os=["bookworm", "trixie"], payload_bytes=range(1, 13)
    )
    trials = campaign(varied, lambda _: 100.0, rounds=3, noise=0.001)
    place = pl.struct("campaign_round", "gateway_os").rank("dense")
    trials = trials.with_columns(instance=place.cast(pl.Int64))
    luck = pl.Series(generator.lognormal(sigma=0.2, size=7))
    trials = trials.with_columns(
        pl.col("value") * pl.col("instance").map_elements(lambda i: luck[i], pl.Float64)
    )
    found = effects(instance_values(trials))
    assert found is not None
    (system,) = [effect for effect in found.effects if effect.factors == ("gateway_os",)]
    assert system.p_value is not None
    assert system.p_value > 0.05


def test_nothing_to_analyse() -> None:
    trials = campaign(cells([("open", "none")]), lambda _: 1.0, rounds=3)
    assert effects(instance_values(trials)) is None


def test_a_long_frame_of_many_rounds_and_metrics() -> None:
    varied = cells([("open", "none"), ("ipip", "none")], payload_bytes=[64, 1400])
    trials = campaign(varied, lambda cell: 10.0 if cell["vpn"] == "open" else 5.0, rounds=2000)
    others = [trials.with_columns(metric=pl.lit(name), value=pl.lit(1.0)) for name in ("jitter", "loss")]
    found = effects(instance_values(pl.concat([trials, *others])))
    assert found is not None
    assert found.n == 2000 * len(varied)
    assert {effect.factors: effect.freedom for effect in found.effects} == {
        ("campaign_round",): 1999,
        ("tunnel",): 1,
        ("payload_bytes",): 1,
        ("tunnel", "payload_bytes"): 1,
    }
