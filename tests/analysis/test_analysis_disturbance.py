"""Doubts that the state of the machine raises."""

from __future__ import annotations

from typing import Any

import polars as pl
from analysis_trials import row

from tunnelbench.analysis.disturbance import disturbances, machine_summary
from tunnelbench.analysis.frames import CELL

STATE = {
    "moment": "during",
    "processors": 4,
    "others": 0.0,
    "stolen": 0.0,
    "frequency_mhz": None,
    "temperature_c": None,
    "clock_source": "tsc",
}
TYPES = {"frequency_mhz": pl.Float64, "temperature_c": pl.Float64, "rate": pl.String}


def states(*changed: dict[str, Any]) -> pl.DataFrame:
    levels = {name: value for name, value in row("gre", 1, 1.0).items() if name in CELL}
    return pl.DataFrame([{**levels, **STATE, **one} for one in changed], schema_overrides=TYPES)


def kinds(frame: pl.DataFrame) -> list[str]:
    return [warning.kind for warning in disturbances(frame)]


def test_a_quiet_machine_raises_no_doubt() -> None:
    assert kinds(states(*[{"others": 0.1, "stolen": 0.1}] * 5)) == []


def test_each_cell_that_others_disturbed_is_named_with_how_much() -> None:
    frame = states(
        {"others": 0.8}, {"others": 1.6}, {"vpn": "ipip", "others": 0.04}, {"vpn": "sit", "stolen": 2.0}
    )
    busy, robbed = disturbances(frame)
    assert busy.message.startswith("gre (namespace, ")
    assert busy.message.endswith("other processes took 30 % of this machine (at most 40 % in one trial)")
    assert "sit" in robbed.message
    assert "its host gave 50 % to others" in robbed.message
    assert "doctor --tune" in busy.advice


def test_a_processor_that_slows_down_is_noticed_and_one_that_wavers_is_not() -> None:
    falling = [{"frequency_mhz": 3000.0 - 100 * step} for step in range(10)]
    wavering = [{"frequency_mhz": 3000.0 + 200 * (-1) ** step} for step in range(10)]
    (warning,) = disturbances(states(*falling))
    assert warning.message.startswith("the processors' clock rate falls by 3")
    assert kinds(states(*wavering)) == []


def test_another_clock_source_is_noticed() -> None:
    assert kinds(states({}, {"clock_source": "hpet"}, {"clock_source": "hpet"})) == ["changed-clock-source"]


def test_what_was_before_and_after_is_not_what_was_during_trials() -> None:
    frame = states({"others": 0.4}, {"others": 0.2}, {"moment": "before", "others": 4.0})
    found = machine_summary(frame)
    assert found is not None
    assert (round(found.others, 3), found.others_most, found.frequency_least) == (0.075, 0.1, None)
    assert found.clock_sources == ("tsc",)
    assert machine_summary(states({"moment": "after"})) is None
