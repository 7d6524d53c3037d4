"""Published numbers beside ours, both as they are and relative to their own plain IP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tunnelbench.analysis.findings.contrast import by_round
from tunnelbench.analysis.findings.scope import NotTestableError, Scope, scope, written
from tunnelbench.analysis.findings.verdict import Beside
from tunnelbench.analysis.frames import CELL
from tunnelbench.analysis.intervals import median_interval
from tunnelbench.study.correspondence import Correspondence
from tunnelbench.study.published import At, Level, Published, Value
from tunnelbench.study.treatment import BASELINE_VPN

_TUNNEL_FACTORS = ("vpn", "suite", "cipher", "compression")
"""The paper's factors that plain IP doesn't have."""


def published_beside_ours(
    values: pl.DataFrame, published: Published, correspondence: Correspondence
) -> tuple[Beside, ...]:
    """Every number of a paper, in its order, beside what `scope.observed` have for it."""
    return tuple(_beside(value, values, published, correspondence) for value in published.values)


@dataclass(frozen=True)
class _Estimate:
    value: float
    low: float | None
    high: float | None


def _beside(value: Value, values: pl.DataFrame, paper: Published, correspondence: Correspondence) -> Beside:
    row = Beside(
        where=value.where,
        metric=value.metric,
        at=written(value.at),
        published=value.value,
        precision=value.precision,
        op=value.op,
        note=value.note,
        value=None,
        low=None,
        high=None,
        published_ratio=_published_ratio(value, paper, correspondence),
        ratio=None,
        ratio_low=None,
        ratio_high=None,
    )
    try:
        find = _FINDERS.get(value.metric, _level)
        ours, ratio = find(value, values, paper, correspondence)
    except NotTestableError as error:
        return replace(row, reason=str(error))
    row = replace(row, value=ours.value, low=ours.low, high=ours.high)
    return (
        row if ratio is None else replace(row, ratio=ratio.value, ratio_low=ratio.low, ratio_high=ratio.high)
    )


_Found = tuple[_Estimate, _Estimate | None]
"""Of the metric itself, and of the ratio to plain IP."""


def _level(value: Value, values: pl.DataFrame, paper: Published, means: Correspondence) -> _Found:
    """A plain metric, over all conditions that the paper doesn't name."""
    found = scope(values, paper, means, value.metric, value.at, _claimed(value.at))
    return _over_rounds(found.values, "value"), _ratio(found)


def _loss(value: Value, values: pl.DataFrame, paper: Published, means: Correspondence) -> _Found:
    """Loss, which is a ratio here."""
    found = scope(values, paper, means, value.metric, value.at, _claimed(value.at))
    return _over_rounds(found.values.with_columns(pl.col("value") * 100), "value"), None


def _variation(value: Value, values: pl.DataFrame, paper: Published, means: Correspondence) -> _Found:
    """Coefficient of variation of the instances of a cell; the median over cells."""
    found = scope(values, paper, means, "throughput", value.at, _claimed(value.at)).values
    cells = found.group_by(CELL).agg((pl.col("value").std() / pl.col("value").mean()).alias("variation"))
    variation = cells["variation"].drop_nulls()
    if variation.is_empty():
        raise NotTestableError("one round has no variation")
    return _Estimate(100 * cast(float, variation.median()), None, None), None


def _decrease(value: Value, values: pl.DataFrame, paper: Published, means: Correspondence) -> _Found:
    """What the slowest suite loses against plain IP."""
    found = scope(values, paper, means, "throughput", value.at, ()).without_plain_ip()
    suites = _of_suites(found, "ratio", paper)
    worst = min(suites.values(), key=lambda of_rounds: float(np.median(of_rounds)))
    ratio = _estimate(worst)
    return _estimate(100 * (1 - worst)), ratio


def _difference(value: Value, values: pl.DataFrame, paper: Published, means: Correspondence) -> _Found:
    """One level of a factor less another under the same conditions."""
    if value.minuend is None or value.subtrahend is None:
        raise NotTestableError("the paper doesn't say of what the difference is")
    factor = next(name for name, levels in paper.factors.items() if value.minuend in levels)
    found = scope(values, paper, means, "throughput", value.at, (factor, *_claimed(value.at)))
    keys = [column for column in CELL if column not in found.columns([factor])]
    minuend, subtrahend = (
        found.having({factor: (level,)}).group_by("campaign_round", *keys).agg(pl.col("value").mean())
        for level in (value.minuend, value.subtrahend)
    )
    pairs = minuend.join(subtrahend, on=["campaign_round", *keys], how="inner", nulls_equal=True)
    if pairs.is_empty():
        raise NotTestableError(f"{value.minuend} and {value.subtrahend} share no round")
    apart = pairs.with_columns(pl.col("value") - pl.col("value_right"))
    return _estimate(by_round(apart, keys, "value")), None


def _spread(value: Value, values: pl.DataFrame, paper: Published, means: Correspondence) -> _Found:
    """The fastest suite less the slowest."""
    found = scope(values, paper, means, "throughput", value.at, ()).without_plain_ip()
    medians = [float(np.median(of_rounds)) for of_rounds in _of_suites(found, "value", paper).values()]
    return _Estimate(max(medians) - min(medians), None, None), None


_FINDERS: dict[str, Callable[[Value, pl.DataFrame, Published, Correspondence], _Found]] = {
    "loss_percent": _loss,
    "cv_percent": _variation,
    "decrease_percent": _decrease,
    "throughput_difference": _difference,
    "throughput_spread": _spread,
}


def _claimed(at: At) -> tuple[str, ...]:
    """Where a number is of one VPN, conditions on the cipher don't touch what has none."""
    return ("vpn",) if "vpn" in at else ()


def _of_suites(found: Scope, column: str, paper: Published) -> dict[Level, NDArray[np.float64]]:
    """Each suite's values by round. Raises NotTestableError where no suite was measured."""
    factor = "suite" if "suite" in paper.factors else "cipher"
    suites: dict[Level, NDArray[np.float64]] = {}
    for level in found.levels(factor):
        own = found.having({factor: (level,)}).drop_nulls(column)
        if not own.is_empty():
            suites[level] = by_round(own, list(CELL), column)
    if not suites:
        raise NotTestableError("no suite was measured beside plain IP")
    return suites


def _ratio(found: Scope) -> _Estimate | None:
    if found.metric != "throughput" or found.values["ratio"].drop_nulls().is_empty():
        return None
    return _over_rounds(found.values.drop_nulls("ratio"), "ratio")


def _over_rounds(frame: pl.DataFrame, column: str) -> _Estimate:
    return _estimate(by_round(frame, list(CELL), column))


def _estimate(of_rounds: NDArray[np.float64]) -> _Estimate:
    """The median over rounds with its interval."""
    interval = median_interval(of_rounds)
    return _Estimate(float(np.median(of_rounds)), interval and interval.low, interval and interval.high)


def _published_ratio(value: Value, paper: Published, means: Correspondence) -> float | None:
    """The number by that of the paper's own plain IP at the same levels, where there is one."""
    if value.metric == "decrease_percent":
        return 1 - value.value / 100
    if value.metric != "throughput" or value.precision == "bound":
        return None
    place = {factor: levels for factor, levels in value.at.items() if factor not in _TUNNEL_FACTORS}
    for other in paper.values:
        tunnel = {factor: levels for factor, levels in other.at.items() if factor in _TUNNEL_FACTORS}
        rest = {factor: levels for factor, levels in other.at.items() if factor not in _TUNNEL_FACTORS}
        if other.metric == "throughput" and rest == place and _is_plain(tunnel, means):
            return value.value / other.value
    return None


def _is_plain(tunnel: At, means: Correspondence) -> bool:
    selections = [means.selection(factor, level) for factor, levels in tunnel.items() for level in levels]
    return bool(selections) and all(
        selection is not None and tuple(selection.get("vpn", ())) == (BASELINE_VPN,)
        for selection in selections
    )
