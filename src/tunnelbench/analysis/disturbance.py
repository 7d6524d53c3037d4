"""Doubts that the state of the machine raises: other work, a processor that slows down, another clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from tunnelbench.analysis.checks import trend_of
from tunnelbench.analysis.frames import CELL, POINT, TREATMENT
from tunnelbench.analysis.warnings import MeasuredCell, MeasurementWarning
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.wording import in_percent

LARGEST_SHARE = 0.05
"""Of the machine's processors, taken by others over a cell's trials, that goes without a warning."""
LARGEST_SLOWING = 0.10
"""Change of the clock rate over a campaign, relative to its median, that goes without a warning."""
SIGNIFICANCE = 0.05


@dataclass(frozen=True)
class MachineSummary:
    """What the machine did while a campaign was measured; medians and extremes over trials."""

    others: float
    """Share of the processors that other processes took."""
    others_most: float
    stolen: float
    """Share of the processors that the hypervisor gave to others."""
    stolen_most: float
    frequency_least: float | None
    """MHz; None where the machine doesn't say."""
    frequency_most: float | None
    temperature_most: float | None
    """Degrees Celsius."""
    clock_sources: tuple[str, ...]


@dataclass(frozen=True)
class DisturbedCell:
    """Others took much of the machine while a cell was measured."""

    cell: MeasuredCell
    others: float
    """Share of all processors, mean over its trials."""
    most: float
    stolen: float
    """The same of what the hypervisor gave to others."""

    kind: ClassVar[str] = "disturbed-cell"

    @property
    def message(self) -> str:
        """What is the matter, and where."""
        parts = [
            f"other processes took {in_percent(self.others)} of this machine "
            f"(at most {in_percent(self.most)} in one trial)"
        ]
        parts += [f"its host gave {in_percent(self.stolen)} to others"] if self.stolen > LARGEST_SHARE else []
        return f"{self.cell}: during its trials {' and '.join(parts)}"

    @property
    def advice(self) -> str:
        """What to do about it."""
        return (
            "Stop other work on this machine and measure again; tunnelbench doctor --tune shows what runs. "
            "Ratios to plain IP suffer less than absolute values."
        )


@dataclass(frozen=True)
class ChangingFrequency:
    """The processors became slower or faster over the campaign."""

    change: float
    """From the first trial to the last, relative to the median."""

    kind: ClassVar[str] = "changing-frequency"

    @property
    def message(self) -> str:
        """What is the matter."""
        moves = "rises" if self.change > 0 else "falls"
        change = in_percent(abs(self.change))
        return f"the processors' clock rate {moves} by {change} from the first trial to the last"

    @property
    def advice(self) -> str:
        """What to do about it."""
        return (
            "Fix the clock rate and cool the machine (tunnelbench doctor --tune); trust ratios to plain IP."
        )


@dataclass(frozen=True)
class ChangedClockSource:
    """The kernel took another clock while a campaign was measured."""

    sources: tuple[str, ...]

    kind: ClassVar[str] = "changed-clock-source"

    @property
    def message(self) -> str:
        """What is the matter."""
        return f"the kernel changed its clock source while measuring: {', '.join(self.sources)}"

    @property
    def advice(self) -> str:
        """What to do about it."""
        return "A clock found unstable is replaced by a slow one: see the kernel's log, and measure again."


def disturbances(states: pl.DataFrame) -> Iterator[MeasurementWarning]:
    """Every doubt that the machine's states raise: a frame as `CampaignData.machine_states` has it."""
    during = _during(states)
    yield from _disturbed_cells(during)
    yield from _changing_frequency(during)
    sources = _clock_sources(during)
    if len(sources) > 1:
        yield ChangedClockSource(sources)


def machine_summary(states: pl.DataFrame) -> MachineSummary | None:
    """What the machine did during trials; None where there is none."""
    during = _during(states)
    if during.is_empty():
        return None
    (row,) = during.select(
        pl.col("others").median(),
        pl.col("others").max().alias("others_most"),
        pl.col("stolen").median(),
        pl.col("stolen").max().alias("stolen_most"),
        pl.col("frequency_mhz").min().alias("frequency_least"),
        pl.col("frequency_mhz").max().alias("frequency_most"),
        pl.col("temperature_c").max().alias("temperature_most"),
    ).iter_rows(named=True)
    return MachineSummary(**row, clock_sources=_clock_sources(during))


def _during(states: pl.DataFrame) -> pl.DataFrame:
    """Those of trials, with shares of all processors."""
    shares = (pl.col(name) / pl.col("processors") for name in ("others", "stolen"))
    return states.filter(pl.col("moment") == "during").with_columns(*shares)


def _disturbed_cells(during: pl.DataFrame) -> Iterator[DisturbedCell]:
    cells = during.group_by(*CELL, maintain_order=True).agg(
        pl.col("others").mean(), pl.col("others").max().alias("most"), pl.col("stolen").mean()
    )
    disturbed = cells.filter((pl.col("others") > LARGEST_SHARE) | (pl.col("stolen") > LARGEST_SHARE))
    for row in disturbed.iter_rows(named=True):
        yield DisturbedCell(_cell(row), row["others"], row["most"], row["stolen"])


def _changing_frequency(during: pl.DataFrame) -> Iterator[ChangingFrequency]:
    seen = during.drop_nulls("frequency_mhz")
    trend = trend_of(np.arange(seen.height), seen["frequency_mhz"].to_numpy())
    if trend is not None and abs(trend.change) > LARGEST_SLOWING and trend.p_value < SIGNIFICANCE:
        yield ChangingFrequency(trend.change)


def _clock_sources(during: pl.DataFrame) -> tuple[str, ...]:
    return tuple(during["clock_source"].drop_nulls().unique(maintain_order=True))


def _cell(row: Mapping[str, Any]) -> MeasuredCell:
    return MeasuredCell(
        treatment=Treatment.model_validate({column: row[column] for column in TREATMENT}),
        point=Point.model_validate({column: row[column] for column in POINT}),
        runtime=row["runtime"],
    )
