"""The figures, each one Altair specification: a panel per runtime, a row per tunnel.

Colours are Okabe and Ito's, which people with any common colour vision can tell apart (Color Universal
Design, 2008). Runtimes have panels with axes of their own, since their numbers are not to be compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import cast

import altair
import polars

from tunnelbench.report.content import CLIENTS, MACHINE, NODES
from tunnelbench.report.theme import FAINT, INK
from tunnelbench.report.wording import interval, number, runtime_title

QUANTILES = {
    "p50": "median",
    "p90": "90 %",
    "p99": "99 %",
    "p999": "99.9 %",
    "max": "largest",
}
"""End of a metric's name to the name of the quantile, in rising order."""

_BLUE, _VERMILION, _SKY, _ORANGE, _GREEN = (
    "#0072B2",
    "#D55E00",
    "#56B4E9",
    "#E69F00",
    "#009E73",
)
_PROTECTION = {"encrypted": _BLUE, "not encrypted": _ORANGE}
_NODES = {
    "host1": _SKY,
    CLIENTS: _SKY,
    "gw1": _BLUE,
    "gw": _BLUE,
    "gw2": _VERMILION,
    "host2": _ORANGE,
    "host": _ORANGE,
}
_QUANTILE_COLOURS = dict(zip(QUANTILES.values(), (_BLUE, _SKY, _GREEN, _ORANGE, _VERMILION), strict=True))

_QUANTILE_SHAPES = dict(
    zip(QUANTILES.values(), ("circle", "square", "diamond", "triangle-up", "cross"), strict=True)
)

_PANEL_WIDTH = 320
_ROW_HEIGHT = 24
_LANE_HEIGHT = 16
"""Of one of several rows that a tunnel has."""

Panel = altair.Chart | altair.LayerChart | altair.FacetChart
Chart = altair.VConcatChart


def bars(frame: polars.DataFrame, unit: str) -> Chart:
    """Bars with 95 % intervals, and the numbers beside them.

    Columns: tunnel, runtime, encrypted, median, low, high (the bounds may be null).
    """

    def panel(rows: polars.DataFrame) -> Panel:
        horizontal = altair.X("median:Q", title=unit, axis=_axis())
        medians = _base(rows).mark_bar(height=14).encode(x=horizontal, color=_protection())
        return altair.layer(medians, *_intervals(rows, "low", "high"), _numbers(rows))

    return _panels(_prepared(frame, "median", "low", "high"), panel)


def ratio(frame: polars.DataFrame, what: str) -> Chart:
    """Points with 95 % intervals, and the numbers beside them.

    Columns: tunnel, runtime, encrypted, ratio, ratio_low, ratio_high (the bounds may be null).
    """

    def panel(rows: polars.DataFrame) -> Panel:
        title = f"{what} as a ratio to plain IP in the same round"
        horizontal = altair.X("ratio:Q", title=title, axis=_axis(), scale=altair.Scale(domainMin=0))
        points = (
            _base(rows).mark_point(filled=True, size=70, opacity=1).encode(x=horizontal, color=_protection())
        )
        plain = altair.Chart(altair.Data(values=[{"ratio": 1}])).mark_rule(color=INK, strokeDash=[4, 3])
        intervals = _intervals(rows, "ratio_low", "ratio_high")
        return altair.layer(plain.encode(x=horizontal), *intervals, points, _numbers(rows))

    return _panels(_prepared(frame, "ratio", "ratio_low", "ratio_high"), panel)


def processor(frame: polars.DataFrame) -> Chart:
    """Bars stacked by node, and a mark for the whole machine.

    Columns: tunnel, runtime, node (one of NODES or MACHINE), value (processor seconds per second).
    """

    drawn = set(frame["node"])
    colours = {node: colour for node, colour in _NODES.items() if node in drawn}

    def panel(rows: polars.DataFrame) -> Panel:
        value = polars.col("value")
        nodes, machine = rows.filter(polars.col("node") != MACHINE), rows.filter(node=MACHINE)
        order = nodes.group_by("tunnel").agg(value.sum()).sort("value", "tunnel", descending=True)["tunnel"]
        title = "processor seconds per second; mark: the whole machine"
        horizontal = altair.X("value:Q", title=title if len(machine) else title.split(";")[0], axis=_axis())
        costs = (
            _base(nodes, order.to_list())
            .mark_bar(height=14)
            .encode(
                x=horizontal.stack("zero"),
                color=altair.Color("node:N", scale=_scale(colours), title=None),
                order=altair.Order("place:Q"),
            )
        )
        marks = _base(machine, order.to_list()).mark_tick(color=INK, size=18, thickness=2.5, opacity=1)
        return altair.layer(costs, marks.encode(x=horizontal))

    place = polars.col("node").replace_strict(_places(NODES), default=len(NODES)).alias("place")
    return _panels(frame.with_columns(place), panel)


def times(frame: polars.DataFrame, what: str) -> Chart:
    """Quantiles on a logarithmic axis.

    Columns: tunnel, runtime, quantile (one of QUANTILES), value (ms, above 0).
    """

    def panel(rows: polars.DataFrame) -> Panel:
        order = rows.sort("place", "value")["tunnel"].unique(maintain_order=True).to_list()
        axis = altair.Axis(values=_round_values(rows["value"]), format="~f")
        scale = altair.Scale(type="log", nice=False, padding=10)
        horizontal = altair.X("value:Q", title=f"{what} in ms, logarithmic", axis=axis, scale=scale)
        shapes = altair.Scale(domain=list(_QUANTILE_SHAPES), range=list(_QUANTILE_SHAPES.values()))
        points = (
            _base(rows, order)
            .mark_point(filled=True, size=70, opacity=1)
            .encode(
                x=horizontal,
                color=altair.Color("quantile:N", scale=_scale(_QUANTILE_COLOURS), title=None),
                shape=altair.Shape("quantile:N", scale=shapes, title=None),
            )
        )
        spans = rows.group_by("tunnel", maintain_order=True).agg(
            low=polars.col("value").min(), high=polars.col("value").max()
        )
        span = _base(spans, order).mark_rule(color=FAINT, strokeWidth=2).encode(x="low:Q", x2="high:Q")
        return altair.layer(span, points)

    quantile = polars.col("quantile")
    place = quantile.replace_strict(_places(QUANTILES)).alias("place")
    return _panels(frame.with_columns(quantile.replace_strict(QUANTILES), place), panel)


def loaded(frame: polars.DataFrame, what: str) -> Chart:
    """Median and 99 % on a logarithmic axis, a row for each background.

    Columns: tunnel, runtime, background (in words), quantile (`p50` or `p99`), value (ms, above 0).
    """
    backgrounds = frame["background"].unique(maintain_order=True).to_list()
    colours = dict(zip(backgrounds, (_BLUE, _VERMILION, _ORANGE, _GREEN), strict=False))

    def panel(rows: polars.DataFrame) -> Panel:
        order = rows.group_by("tunnel").agg(polars.col("value").max()).sort("value", "tunnel")["tunnel"]
        lanes = altair.YOffset("background:N", sort=backgrounds)
        axis = altair.Axis(values=_round_values(rows["value"]), format="~f")
        scale = altair.Scale(type="log", nice=False, padding=10)
        horizontal = altair.X("value:Q", title=f"{what} in ms, logarithmic", axis=axis, scale=scale)
        shapes = {QUANTILES[quantile]: _QUANTILE_SHAPES[QUANTILES[quantile]] for quantile in ("p50", "p99")}
        points = (
            _base(rows, order.to_list())
            .mark_point(filled=True, size=60, opacity=1)
            .encode(
                x=horizontal,
                yOffset=lanes,
                color=altair.Color(
                    "background:N", scale=_scale(colours), title=None, legend=altair.Legend(columns=2)
                ),
                shape=altair.Shape(
                    "quantile:N",
                    scale=altair.Scale(domain=list(shapes), range=list(shapes.values())),
                    title=None,
                ),
            )
        )
        spans = rows.group_by("tunnel", "background", maintain_order=True).agg(
            low=polars.col("value").min(), high=polars.col("value").max()
        )
        span = _base(spans, order.to_list()).mark_rule(color=FAINT, strokeWidth=2)
        return altair.layer(span.encode(x="low:Q", x2="high:Q", yOffset=lanes), points)

    words = frame.with_columns(polars.col("quantile").replace_strict(QUANTILES))
    return _panels(words, panel, _LANE_HEIGHT)


def _panels(
    frame: polars.DataFrame,
    panel: Callable[[polars.DataFrame], Panel],
    row_height: int = _ROW_HEIGHT,
) -> Chart:
    runtimes = frame["runtime"].unique(maintain_order=True).sort(descending=True)
    charts = [
        panel(frame.filter(runtime=runtime)).properties(
            width=_PANEL_WIDTH, height=altair.Step(row_height), title=panel_title(runtime)
        )
        for runtime in runtimes
    ]
    return altair.vconcat(*charts, spacing=28)


def panel_title(runtime: str) -> str:
    """What stands over the panel of a runtime."""
    title = runtime_title(runtime)
    return title[0].upper() + title[1:]


def inline(rows: polars.DataFrame) -> altair.InlineData:
    """Rows as text: Altair copies and checks all else that it holds again and again."""
    return altair.InlineData(rows.write_json(), format=altair.JsonDataFormat(type="json"))


def _base(rows: polars.DataFrame, order: Sequence[str] | None = None) -> altair.Chart:
    sort = rows["tunnel"].to_list() if order is None else list(order)
    vertical = altair.Y("tunnel:N", sort=sort, title=None, axis=altair.Axis(ticks=False, labelPadding=8))
    return altair.Chart(inline(rows)).encode(y=vertical)


def _prepared(frame: polars.DataFrame, value: str, low: str, high: str) -> polars.DataFrame:
    """Rows from the largest value to the smallest, with the words of legend and numbers."""
    encrypted, plain = map(polars.lit, _PROTECTION)
    words = [
        number(middle) if bottom is None or top is None else f"{number(middle)}  ({interval(bottom, top)})"
        for middle, bottom, top in frame.select(value, low, high).iter_rows()
    ]
    return frame.with_columns(
        polars.when("encrypted").then(encrypted).otherwise(plain).alias("protection"),
        polars.Series("numbers", words, dtype=polars.String),
    ).sort(value, descending=True)


def _numbers(rows: polars.DataFrame) -> altair.Chart:
    return (
        _base(rows)
        .mark_text(align="left", color=INK)
        .encode(x=altair.value(_PANEL_WIDTH + 12), text="numbers:N")
    )


def _intervals(rows: polars.DataFrame, low: str, high: str) -> list[altair.Chart]:
    known = rows.drop_nulls([low, high])
    if known.is_empty():
        return []
    base = _base(known, rows["tunnel"].to_list())
    ends = [
        base.mark_tick(color=INK, size=8, thickness=1.5, opacity=1).encode(x=f"{end}:Q")
        for end in (low, high)
    ]
    return [base.mark_rule(color=INK, strokeWidth=1.5).encode(x=f"{low}:Q", x2=f"{high}:Q"), *ends]


def _protection() -> altair.Color:
    return altair.Color("protection:N", scale=_scale(_PROTECTION), title=None)


def _scale(colours: Mapping[str, str]) -> altair.Scale:
    return altair.Scale(domain=list(colours), range=list(colours.values()))


def _axis() -> altair.Axis:
    return altair.Axis(format="~f", tickCount=6)


def _places(names: Iterable[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _round_values(values: polars.Series) -> list[float]:
    """Where a logarithmic axis has its labels: powers of ten, with 2 and 5 between them if they are few."""
    low, high = (math.log10(cast(float, end)) for end in (values.min(), values.max()))
    steps = (1, 2, 5) if high - low < 3 else (1,)
    decades = range(math.floor(low), math.ceil(high) + 1)
    return [step * 10.0**decade for decade in decades for step in steps]
