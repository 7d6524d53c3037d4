"""What has changed from one campaign to another, cell by cell.

The two campaigns share no rounds, so their instances are independent samples: Welch's t test and interval (B.
L. Welch, Biometrika 34, 1947) of the logarithms, whose difference is the ratio. A cell counts as changed only
if the change is larger than the smallest effect of interest and beyond chance for all cells together (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import ArrayLike
from scipy import special  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.frames import CELL, POINT, TREATMENT, instance_values
from tunnelbench.analysis.holm import holm
from tunnelbench.analysis.intervals import CONFIDENCE
from tunnelbench.analysis.ranked import LESS_IS_BETTER, answering
from tunnelbench.analysis.ratio import with_ratio
from tunnelbench.analysis.warnings import MeasuredCell
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment

SIGNIFICANCE = 0.05
LEAST = 0.01
"""The smallest effect of interest, as a ratio, where none is given."""

Verdict = Literal["worse", "better", "unchanged", "undecided"]
"""`unchanged`: the whole interval is within the smallest effect of interest. `undecided`: it is not, and no
change is shown either."""


@dataclass(frozen=True)
class Shift:
    """The ratio of two independent samples, by their logarithms."""

    ratio: float
    """Of the geometric means, the second by the first."""
    low: float | None
    """Lower end of Welch's 95 % interval; None where a sample has one value only."""
    high: float | None
    p_value: float | None
    """Of a ratio as far from 1, where there is none."""


@dataclass(frozen=True)
class Change:
    """What became of one cell."""

    cell: MeasuredCell
    metric: str
    """The one that answers the question of its point."""
    before: float
    """Geometric mean over instances, in the metric's unit; a ratio where ratios to plain IP are compared."""
    after: float
    n_before: int
    """Instances."""
    n_after: int
    ratio: float
    """After by before."""
    low: float | None
    high: float | None
    p_value: float | None
    """Corrected for the number of cells."""
    verdict: Verdict


@dataclass(frozen=True)
class Comparison:
    """What has changed."""

    changes: tuple[Change, ...]
    """Of the cells that both have numbers for, the worst first."""
    only_before: tuple[MeasuredCell, ...]
    only_after: tuple[MeasuredCell, ...]


def compare(
    before: pl.DataFrame, after: pl.DataFrame, least: float = LEAST, relative: bool = False
) -> Comparison:
    """Compares two campaigns' `frames.TRIALS`; with `relative` the ratios to plain IP of the same round."""
    olds, news = _samples(before, relative), _samples(after, relative)
    shared = [cell for cell in olds if cell in news]
    shifts = [shift_of(olds[cell], news[cell]) for cell in shared]
    tested = [place for place, shift in enumerate(shifts) if shift.p_value is not None]
    adjusted = dict(zip(tested, holm([shifts[it].p_value or 0.0 for it in tested]).tolist(), strict=True))
    changes = [
        _change(cell, olds[cell], news[cell], shifts[place], adjusted.get(place), least)
        for place, cell in enumerate(shared)
    ]
    return Comparison(
        tuple(sorted(changes, key=_goodness)),
        tuple(cell for cell, _ in olds if (cell, _) not in news),
        tuple(cell for cell, _ in news if (cell, _) not in olds),
    )


def shift_of(before: ArrayLike, after: ArrayLike) -> Shift:
    """The ratio of two samples of values above zero."""
    one, other = np.log(np.asarray(before, float)), np.log(np.asarray(after, float))
    mean = float(other.mean() - one.mean())
    if min(one.size, other.size) < 2:
        return Shift(math.exp(mean), None, None, None)
    variances = [float(sample.var(ddof=1)) / sample.size for sample in (one, other)]
    error = math.sqrt(sum(variances))
    if error <= 1e-13 * max(1.0, abs(mean)):  # Nothing varies but by rounding.
        differs = abs(mean) > 1e-12
        return Shift(math.exp(mean), math.exp(mean), math.exp(mean), 0.0 if differs else 1.0)
    freedom = sum(variances) ** 2 / sum(
        variance**2 / (sample.size - 1) for variance, sample in zip(variances, (one, other), strict=True)
    )
    half = float(special.stdtrit(freedom, (1 + CONFIDENCE) / 2)) * error
    p_value = 2 * float(special.stdtr(freedom, -abs(mean) / error))
    return Shift(math.exp(mean), math.exp(mean - half), math.exp(mean + half), p_value)


_Key = tuple[MeasuredCell, str]


def _samples(trials: pl.DataFrame, relative: bool) -> dict[_Key, Sequence[float]]:
    """Values above zero over instances, by cell and metric."""
    values = with_ratio(instance_values(answering(trials)))
    value = "ratio" if relative else "value"
    counted = values.filter(pl.col(value) > 0)
    cells = counted.group_by(*CELL, "metric", maintain_order=True).agg(pl.col(value).alias("sample"))
    return {(_cell(row), row["metric"]): row["sample"] for row in cells.iter_rows(named=True)}


def _cell(row: Mapping[str, Any]) -> MeasuredCell:
    return MeasuredCell(
        treatment=Treatment.model_validate({column: row[column] for column in TREATMENT}),
        point=Point.model_validate({column: row[column] for column in POINT}),
        runtime=row["runtime"],
    )


def _change(
    key: _Key, old: Sequence[float], new: Sequence[float], shift: Shift, p_value: float | None, least: float
) -> Change:
    cell, metric = key
    return Change(
        cell=cell,
        metric=metric,
        before=_geometric_mean(old),
        after=_geometric_mean(new),
        n_before=len(old),
        n_after=len(new),
        ratio=shift.ratio,
        low=shift.low,
        high=shift.high,
        p_value=p_value,
        verdict=_verdict(shift, p_value, least, metric in LESS_IS_BETTER),
    )


def _verdict(shift: Shift, p_value: float | None, least: float, less_is_better: bool) -> Verdict:
    if shift.low is None or shift.high is None or p_value is None:
        return "undecided"
    edge = 1 + least
    if p_value <= SIGNIFICANCE and not 1 / edge <= shift.ratio <= edge:
        return "better" if (shift.ratio > 1) != less_is_better else "worse"
    return "unchanged" if 1 / edge <= shift.low and shift.high <= edge else "undecided"


def _goodness(change: Change) -> tuple[int, float]:
    """Verdicts from worse to better, and in each of them the change for the worse first."""
    order = ("worse", "undecided", "unchanged", "better").index(change.verdict)
    return order, 1 / change.ratio if change.metric in LESS_IS_BETTER else change.ratio


def _geometric_mean(values: Sequence[float]) -> float:
    return math.exp(math.fsum(map(math.log, values)) / len(values))
