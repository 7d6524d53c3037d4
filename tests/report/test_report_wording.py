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
    point_title,
    some_of,
)
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import Bursts, SendingRate


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


def test_points() -> None:
    assert point_title(TCP) == "TCP over IPv4, 128 KiB writes, forward, engine"
    limited = UDP.model_copy(update={"rate": SendingRate(10_000_000), "ip": "ipv6", "direction": "reverse"})
    assert point_title(limited) == "UDP over IPv6, 1400-byte datagrams at 10 Mbit/s, reverse, engine"
    assert point_slug(limited) == "udp-ipv6-1400-10-Mbit_s-reverse-engine"
    assert "/" not in point_slug(TCP.model_copy(update={"load": "../../etc"}))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rate": Bursts(100, 10_000_000)}, "1400-byte datagrams in bursts of 100 every 10 ms, forward"),
        ({"rate": SendingRate(9, "packets/s"), "direction": "both"}, "at 9 packets/s, in both directions"),
        ({"sending": "per-packet", "content": "zeros"}, "payload of zeros, sent per-packet, forward"),
        ({"sending": "batched", "content": "random"}, "as fast as possible, forward, engine"),
        ({"profile": "dns", "payload_bytes": None, "rate": None}, "UDP over IPv4, dns, forward"),
        (
            {"profile": "request-response", "payload_bytes": 64, "rate": None, "direction": None},
            "UDP over IPv4, 64-byte requests and responses, engine",
        ),
        (
            {"transport": "icmp", "direction": None, "payload_bytes": 56, "load": "ping"},
            "ICMP over IPv4, 56-byte echo requests one after the other, ping",
        ),
    ],
)
def test_levels_that_are_not_usual_are_told(changed: dict[str, object], words: str) -> None:
    assert words in point_title(Point.model_validate({**UDP.model_dump(), **changed}))


def test_some_of_many() -> None:
    assert some_of(["a"]) == "a"
    assert some_of(["a", "b", "c", "d", "e"]) == "a; b; c; and 2 more"
