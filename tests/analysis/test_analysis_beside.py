"""Published numbers beside ours."""

from __future__ import annotations

from typing import Any

import pytest
from findings_campaigns import Cell, campaign, cells, correspondence, paper

from tunnelbench.analysis.findings.beside import published_beside_ours
from tunnelbench.analysis.findings.scope import observed
from tunnelbench.analysis.findings.verdict import Beside
from tunnelbench.analysis.frames import instance_values

TUNNELS = [("open", "none"), *(("ipsec-manual", f"{cipher}-sha1") for cipher in ("des", "3des", "aes128"))]
SPEED = {"none": 900.0, "des-sha1": 300.0, "3des-sha1": 180.0, "aes128-sha1": 450.0}
PLAIN = {"vpn": {"open": {"vpn": ["open"]}}, "suite": {"open": {"vpn": ["open"]}}}


def beside(*values: dict[str, Any], **levels: list[Any]) -> tuple[Beside, ...]:
    def truth(cell: Cell) -> float:
        return SPEED[cell["suite"]] * (0.8 if cell.get("ip") == "ipv6" else 1)

    trials = campaign(cells(TUNNELS, **levels), truth, rounds=8)
    printed = [{"where": "t", "metric": "throughput", "precision": "exact", **value} for value in values]
    factors = {"suite": ["open", "des-sha1", "3des-sha1", "aes128-sha1"], "ip": ["ipv4", "ipv6"]}
    return published_beside_ours(
        observed(instance_values(trials)), paper(value=printed, factors=factors), correspondence(PLAIN)
    )


def test_a_number_and_its_ratio_to_the_papers_own_plain_ip() -> None:
    plain, aes, des = beside(
        {"at": {"suite": "open"}, "value": 100},
        {"at": {"suite": "aes128-sha1"}, "value": 40},
        {"at": {"suite": "des-sha1"}, "value": 90, "precision": "bound", "op": "<"},
    )
    assert plain.published_ratio == 1
    assert plain.ratio == pytest.approx(1)
    assert (aes.published, aes.published_ratio, aes.at) == (40, 0.4, "suite aes128-sha1")
    assert aes.ratio == pytest.approx(0.5, rel=0.02)
    assert aes.ratio_low is not None
    assert aes.ratio_high is not None
    assert aes.ratio is not None
    assert aes.ratio_low <= aes.ratio <= aes.ratio_high
    assert (des.op, des.published_ratio) == ("<", None)


def test_what_is_lost_of_plain_ip_by_the_slowest() -> None:
    (found,) = beside({"at": {"transport": "tcp"}, "metric": "decrease_percent", "value": 51.33})
    assert found.value == pytest.approx(80, abs=1)
    assert found.published_ratio == pytest.approx(0.4867)
    assert found.ratio == pytest.approx(0.2, abs=0.01)


def test_differences_and_spreads() -> None:
    between, over = beside(
        {
            "at": {"suite": "open"},
            "metric": "throughput_difference",
            "minuend": "ipv4",
            "subtrahend": "ipv6",
            "value": 10,
        },
        {"at": {"ip": "ipv4"}, "metric": "throughput_spread", "value": 3},
        ip=["ipv4", "ipv6"],
    )
    assert between.value == pytest.approx(180, rel=0.4)
    assert over.value == pytest.approx(270, rel=0.4)
    assert between.low is not None
    assert between.value is not None
    assert 0 < between.low <= between.value


def test_variation_in_percent() -> None:
    (found,) = beside({"at": {"suite": "aes128-sha1"}, "metric": "cv_percent", "value": 4.2})
    assert found.value is not None
    assert 5 < found.value < 40  # the luck of rounds: 20 %


def test_what_was_not_measured_has_a_reason() -> None:
    jitter, cipher = beside(
        {"at": {"suite": "open"}, "metric": "jitter", "value": 1},
        {"at": {"suite": "aes192-sha1"}, "value": 1},
    )
    assert (jitter.value, jitter.reason) == (None, "no jitter was measured")
    assert cipher.reason == "no throughput was measured at suite aes192-sha1"
