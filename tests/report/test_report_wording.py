"""How numbers and points are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_campaign import TCP, UDP

from tunnelbench.report.wording import (
    NOTHING,
    compact_interval,
    interval,
    number,
    percentage,
    point_slug,
    some_of,
)
from tunnelbench.study.quantity import SendingRate


@given(st.floats(1e-9, 1e12))
def test_numbers_lose_at_most_five_per_cent(value: float) -> None:
    assert float(number(value)) == pytest.approx(value, rel=0.05)


@given(st.floats(0.1, 1e12))
def test_numbers_that_are_not_tiny_lose_less_than_a_hundredth(value: float) -> None:
    assert float(number(value)) == pytest.approx(value, rel=0.006)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, NOTHING),
        (0.0, "0"),
        (0.0701, "0.070"),
        (0.5, "0.500"),
        (9.996, "10.0"),
        (99.96, "100"),
        (3612.4, "3612"),
    ],
)
def test_numbers(value: float | None, text: str) -> None:
    assert number(value) == text


def test_intervals_and_percentages() -> None:
    assert interval(1.0, 20.0) == "1.00 to 20.0"
    assert compact_interval(1.0, 20.0) == "1.00\N{EN DASH}20.0"
    assert interval(None, 1.0) == compact_interval(1.0, None) == percentage(None) == NOTHING
    assert (percentage(0.0), percentage(1.0), percentage(0.1234)) == ("0 %", "100 %", "12.3 %")
    assert (percentage(0.99), percentage(0.026), percentage(0.0125)) == ("99.0 %", "2.60 %", "1.25 %")
    assert (percentage(0.000386), percentage(0.0000129), percentage(1.73)) == ("0.04 %", "< 0.01 %", "173 %")


def test_the_file_name_of_a_point() -> None:
    limited = UDP.model_copy(update={"rate": SendingRate(10_000_000), "ip": "ipv6", "direction": "reverse"})
    assert point_slug(limited) == "udp-ipv6-1400-10-Mbit_s-reverse-engine"
    assert "/" not in point_slug(TCP.model_copy(update={"load": "../../etc"}))


def test_some_of_many() -> None:
    assert some_of(["a"]) == "a"
    assert some_of(["a", "b", "c", "d", "e"]) == "a; b; c; and 2 more"
