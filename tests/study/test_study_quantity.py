"""Quantities with units."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.study.quantity import (
    BIT_RATE,
    DURATION,
    MAXIMUM,
    Bursts,
    Rate,
    SendingRate,
    format_bit_rate,
    format_seconds,
    parse_bit_rate,
    parse_bytes,
    parse_ratio,
    parse_seconds,
    parse_sending_rate,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5 s", 5.0), ("10m", 600.0), ("1 min", 60.0), ("1.5 h", 5400.0), ("250 ms", 0.25), (" 7us ", 7e-6)],
)
def test_seconds(text: str, seconds: float) -> None:
    assert parse_seconds(text) == seconds


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1400, 1400),
        ("1400 B", 1400),
        ("128 KiB", 131_072),
        ("1.5 KiB", 1536),
        ("1 kB", 1000),
        ("2 MiB", 2**21),
    ],
)
def test_bytes(value: object, expected: int) -> None:
    assert parse_bytes(value) == expected


def test_sending_rates() -> None:
    assert parse_sending_rate("max").bits_per_second(1400) is None
    assert parse_sending_rate("10 Mbit/s").bits_per_second(1400) == 10_000_000
    assert parse_sending_rate("10000 packets/s").bits_per_second(1400) == 10_000 * 1400 * 8
    assert parse_sending_rate("10000pps") == parse_sending_rate("10000 packets/s")


def test_bursts() -> None:
    bursts = parse_sending_rate("100 every 10 ms")
    assert bursts == Bursts(100, 10_000_000)
    assert bursts.bits_per_second(1000) == 80_000_000
    assert [str(Bursts(5, interval)) for interval in (2 * 10**9, 10**6, 1500, 1)] == [
        "5 every 2 s",
        "5 every 1 ms",
        "5 every 1.5 us",
        "5 every 0.001 us",
    ]


@pytest.mark.parametrize(
    "value", ["0 every 1 s", "5 every 0 s", "x every 1 s", "5 every 1", "-5 every 1 s", "1 every 0.0001 us"]
)
def test_wrong_bursts(value: str) -> None:
    with pytest.raises(ValueError, match=r"above zero|such as|no unit|whole number"):
        parse_sending_rate(value)


@pytest.mark.parametrize(("value", "ratio"), [(0, 0.0), (0.25, 0.25), ("1 %", 0.01), ("0.5%", 0.005)])
def test_ratios(value: object, ratio: float) -> None:
    assert parse_ratio(value) == ratio


@pytest.mark.parametrize(
    "value", ["5", 5, 5.0, True, None, "five s", "5 sec", "-5 s", "5 Mbit/s", "", "nan s"]
)
def test_a_wrong_duration_names_the_units(value: object) -> None:
    with pytest.raises(ValueError, match=r"write a duration in us, ms, s, m, min, h, for example"):
        parse_seconds(value)


@pytest.mark.parametrize("value", ["1.5 B", "1400 b", True, 1.5, -1, "-1 B", "1400"])
def test_wrong_sizes(value: object) -> None:
    with pytest.raises(ValueError, match=r"B|bytes"):
        parse_bytes(value)


@pytest.mark.parametrize("value", ["0 Mbit/s", "1 mbit/s", "10", 10, "maximum", "0.5 packets/s", "-3 bit/s"])
def test_wrong_sending_rates(value: object) -> None:
    with pytest.raises(ValueError, match=r"/s"):
        parse_sending_rate(value)


@pytest.mark.parametrize("value", [1, 1.0, -0.1, "100 %", "1", float("nan"), True])
def test_wrong_ratios(value: object) -> None:
    with pytest.raises(ValueError, match=r"%"):
        parse_ratio(value)


@given(st.floats(min_value=0, max_value=1e9, allow_subnormal=False))
def test_written_seconds_read_back(seconds: float) -> None:
    assert parse_seconds(format_seconds(seconds)) == seconds


@given(st.integers(min_value=1, max_value=10**15))
def test_written_bit_rates_read_back(rate: int) -> None:
    assert parse_bit_rate(format_bit_rate(rate)) == rate


@given(
    st.builds(
        SendingRate, st.integers(min_value=1, max_value=10**15), st.sampled_from(("bit/s", "packets/s"))
    )
    | st.builds(Bursts, st.integers(1, 10**6), st.integers(1, 10**13))
    | st.just(MAXIMUM)
)
def test_written_sending_rates_read_back(rate: Rate) -> None:
    assert parse_sending_rate(str(rate)) == rate


@given(st.decimals(min_value=0, max_value=1000, places=3), st.sampled_from(tuple(DURATION.units)))
def test_a_duration_scales_with_its_unit(number: object, unit: str) -> None:
    assert parse_seconds(f"{number} {unit}") == pytest.approx(
        parse_seconds(f"{number} s") * float(DURATION.units[unit])
    )


def test_the_largest_whole_unit_is_written() -> None:
    assert [format_bit_rate(rate) for rate in (1, 1500, 2_000_000, 10**9)] == [
        "1 bit/s",
        "1500 bit/s",
        "2 Mbit/s",
        "1 Gbit/s",
    ]
    assert set(BIT_RATE.units) == {"bit/s", "kbit/s", "Mbit/s", "Gbit/s"}
