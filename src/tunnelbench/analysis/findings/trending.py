"""Claims about how a metric moves as a factor grows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tunnelbench.analysis.findings.comparing import equal
from tunnelbench.analysis.findings.contrast import by_round
from tunnelbench.analysis.findings.ruling import NEGLIGIBLE, SIGNIFICANCE, Part, Ruling, ordered, ruling
from tunnelbench.analysis.findings.scope import NotTestableError, Scope
from tunnelbench.analysis.findings.verdict import Detail
from tunnelbench.analysis.findings.wording import detail, number, within
from tunnelbench.analysis.frames import CELL
from tunnelbench.analysis.holm import holm
from tunnelbench.analysis.paired import Difference, difference
from tunnelbench.analysis.trends import page, unimodal
from tunnelbench.study.published import Trend
from tunnelbench.study.wording import factor_words, level_words, metric_words

FLAT = 0.05
"""Ratio less one; levels that are all within it of each other are flat."""


@dataclass(frozen=True)
class Course:
    """A metric over the levels of a factor."""

    levels: tuple[int | float, ...]
    """In ascending order."""
    blocks: NDArray[np.float64]
    """`[round, level]`: logarithm of the metric, mean over the conditions of the round."""
    conditions: int

    def change(self, start: int, end: int) -> Difference:
        """From one level to another, by index."""
        return difference(self.blocks[:, end] - self.blocks[:, start])


def judge_trend(claim: Trend, scope: Scope) -> Ruling:
    """A rise or fall by Page's test over rounds; a rise and fall by one on each side; flat by equivalence."""
    course = course_over(claim.over, scope)
    details = _details(course, claim.over)
    match claim.shape:
        case "rising" | "falling":
            parts = [_monotone(course, claim, 0, len(course.levels) - 1, is_rise=claim.shape == "rising")]
            test, remark = "Page's test over rounds", _exceptions(course, claim.shape == "rising")
        case "rising-then-falling":
            top = _top(course, claim)
            parts = [
                _monotone(course, claim, 0, top, is_rise=True),
                _monotone(course, claim, top, len(course.levels) - 1, is_rise=False),
            ]
            peak = course.levels[unimodal(course.blocks.mean(axis=0)).peak]
            test, remark = "Page's test over rounds on each side", f"; the highest is at {peak:g}"
        case "flat":
            pairs = combinations(range(len(course.levels)), 2)
            parts = [equal(course.change(*pair), _says(course, claim, *pair), FLAT) for pair in pairs]
            test, remark = "two one-sided paired t tests of log ratios over rounds", ""
    return ruling(parts, details, scope.unit, test, remark=remark)


def course_over(factor: str, scope: Scope) -> Course:
    """The metric over a numeric factor. Raises NotTestableError where fewer than three levels were."""
    if factor not in CELL:
        raise NotTestableError(scope.with_note(f"nothing here stands for {factor_words(factor)}", factor))
    keys = [column for column in CELL if column != factor]
    values = scope.values.filter(pl.col(factor).is_not_null())
    points = values.group_by("campaign_round", *keys, factor).agg(pl.col("value").log().mean())
    swept = points.group_by(keys).agg(pl.col(factor).unique().sort().alias("levels"))
    swept = swept.filter(pl.col("levels").list.len() >= 3)
    if swept.is_empty():
        raise NotTestableError(
            f"fewer than three levels of {factor_words(factor)} were measured under equal conditions"
        )
    # Conditions may be swept over different levels: those that most have are looked at.
    levels: list[int | float] = swept["levels"].value_counts(sort=True)["levels"][0].to_list()
    frame = (
        points.filter(pl.col(factor).is_in(levels))
        .with_columns(count=pl.len().over("campaign_round", *keys))
        .filter(pl.col("count") == len(levels))
        .drop("count")
    )
    columns = [by_round(frame.filter(pl.col(factor) == level), keys, "value") for level in levels]
    conditions = frame.select(keys).n_unique()
    return Course(tuple(levels), np.column_stack(columns), conditions)


def _monotone(course: Course, claim: Trend, start: int, end: int, *, is_rise: bool) -> Part:
    """A rise or fall over some of the levels.

    Shown: Page's test. Denied: Page's test of the opposite, or an end that is shown to be higher than the
    start by a negligible amount at most. With two levels, their paired difference.
    """
    sign = 1 if is_rise else -1
    found = course.change(start, end)
    turned = Difference(found.n, sign * found.mean, found.standard_deviation)
    says = _says(course, claim, start, end)
    whole = ordered(turned, says)
    if end - start < 2:
        return whole
    blocks = sign * course.blocks[:, start : end + 1]
    p_support = page(blocks) if found.n > 1 else 1.0
    p_against = page(-blocks) if found.n > 1 else 1.0
    p_flat = whole.p_denial if p_support > SIGNIFICANCE or turned.mean < math.log1p(NEGLIGIBLE) else 1.0
    if p_flat <= SIGNIFICANCE:
        p_support = 1.0
    return Part(says, p_support, min(p_against, p_flat), whole.rounds_needed)


def _says(course: Course, claim: Trend, start: int, end: int) -> str:
    found = course.change(start, end)
    low, high = course.levels[start], course.levels[end]
    return (
        f"from {level_words(claim.over, low)} to {high:g}, {metric_words(claim.metric)} changes "
        f"to {number(found.ratio)} times ({within(found)})"
    )


def _exceptions(course: Course, is_rise: bool) -> str:
    """Single steps that go the other way beyond doubt."""
    sign = 1 if is_rise else -1
    steps = [course.change(*step) for step in pairwise(range(len(course.levels)))]
    against = [1.0 if step.p_value is None or sign * step.mean >= 0 else step.p_value for step in steps]
    said = [
        f"from {course.levels[index]:g} to {course.levels[index + 1]:g} ({number(step.ratio)} times)"
        for index, (step, p_value) in enumerate(zip(steps, holm(against), strict=True))
        if p_value <= SIGNIFICANCE
    ]
    return f"; except {' and '.join(said)}" if said else ""


def _top(course: Course, claim: Trend) -> int:
    """The claimed peak, or the highest level up to it; our own where none is claimed."""
    if claim.peak is None:
        top = unimodal(course.blocks.mean(axis=0)).peak
        return min(max(top, 1), len(course.levels) - 2)
    below = [index for index, level in enumerate(course.levels) if level <= claim.peak]
    if not below or below[-1] == 0:
        raise NotTestableError(f"no two levels up to {level_words(claim.over, claim.peak)} were measured")
    if below[-1] == len(course.levels) - 1:
        raise NotTestableError(f"no level above {level_words(claim.over, claim.peak)} was measured")
    return below[-1]


def _details(course: Course, name: str) -> tuple[Detail, ...]:
    """Geometric means of every level."""
    return tuple(
        detail(level_words(name, level), difference(course.blocks[:, index]))
        for index, level in enumerate(course.levels)
    )
