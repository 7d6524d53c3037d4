"""Figures in the form of published evaluations: lines, columns side by side, stacks.

Colours and their order as in `figures`; lines differ by their marks as well, so that none needs colours.
"""

from __future__ import annotations

from collections.abc import Iterator

import altair
import polars

from tunnelbench.report.figures import Chart, Panel, inline, panel_title
from tunnelbench.report.theme import INK
from tunnelbench.study.treatment import BASELINE_VPN

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8A8A8A")
_SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right")
MOST_LINES = len(PALETTE)
"""Lines in one panel: as many as there are colours that can be told apart."""
_WIDTH, _HEIGHT = 470, 250
"""So that two stand side by side on a page of 1280 pixels."""
_LETTERS = 60
"""Letters of labels that fit under a panel side by side."""
_MOST_LABELS = 12
"""Places of an axis that have a label each."""

PARTS = {
    "arrived": ("arrived", "#0072B2"),
    "unexplained": ("unexplained: waiting", "#8A8A8A"),
    "sharing": ("processors shared with all else", "#CC79A7"),
    "run queue": ("its wait for a processor", "#F0E442"),
    "tunnel's work": ("the tunnel's other work", "#E69F00"),
    "cipher": ("its cryptography", "#D55E00"),
    "plain IP": ("what plain IP takes here", "#009E73"),
    "tunnel headers": ("its headers", "#56B4E9"),
    "Wi-Fi frames": ("frames of Wi-Fi around plain IP", "#7B5EA7"),
    "Wi-Fi": ("the airtime of Wi-Fi", "#C3B1E1"),
    "headers": ("headers of plain IP", "#B3B3B3"),
}
"""Parts of a stack from the bottom up, with their words and colours."""


def lines(frame: polars.DataFrame, title: str, over: str, from_zero: bool = True) -> Chart:
    """Lines with 95 % intervals, a panel for each runtime and few enough tunnels.

    Columns: tunnel, vpn, runtime, place, median, low, high (the bounds may be null). `over` is the title of
    the axis of places, `title` that of the vertical one, which begins at zero unless small steps are to be
    seen.
    """
    panels = [
        _lines(rows, title, over, from_zero).properties(width=_WIDTH, height=_HEIGHT, title=heading)
        for heading, rows in _line_panels(frame)
    ]
    chart = altair.vconcat(*panels, spacing=28)
    return chart.resolve_scale(color="independent", shape="independent")  # pyright: ignore[reportUnknownMemberType]


def columns(frame: polars.DataFrame, title: str, legend: str) -> Chart:
    """Columns side by side with 95 % intervals.

    Columns: panel, group (what stands together), bar (what has a colour), median, low, high.
    """
    by_panel = {panel: frame.filter(panel=panel) for panel in frame["panel"].unique(maintain_order=True)}
    panels = [
        _columns(rows, title, legend).properties(width=_WIDTH, height=_HEIGHT, title=panel)
        for panel, rows in by_panel.items()
    ]
    return altair.vconcat(*panels, spacing=28)


def stack(frame: polars.DataFrame) -> Chart:
    """Bars from what arrived up to what would be possible, each part in its colour.

    Columns: tunnel, runtime, part (one of PARTS), value (Mbit/s).
    """
    words = {name: word for name, (word, _) in PARTS.items()}
    order = {name: place for place, name in enumerate(PARTS)}
    rows = frame.with_columns(
        polars.col("part").replace_strict(words).alias("words"),
        polars.col("part").replace_strict(order).alias("place"),
    )
    shown = [(word, colour) for name, (word, colour) in PARTS.items() if name in frame["part"].unique()]
    scale = altair.Scale(domain=[word for word, _ in shown], range=[colour for _, colour in shown])
    panels = [
        altair.Chart(inline(of_runtime))
        .mark_bar(height=14)
        .encode(
            y=altair.Y("tunnel:N", title=None, sort=_by_arrival(of_runtime), axis=_labels()),
            x=altair.X("value:Q", title="Mbit/s", axis=altair.Axis(format="~f", tickCount=6)).stack("zero"),
            color=altair.Color("words:N", scale=scale, title=None, legend=altair.Legend(columns=2)),
            order=altair.Order("place:Q"),
        )
        .properties(width=_WIDTH, height=altair.Step(24), title=panel_title(runtime))
        for runtime, of_runtime in _by_runtime(rows)
    ]
    return altair.vconcat(*panels, spacing=28)


def beside(frame: polars.DataFrame) -> Chart:
    """Published values and ours in one row, both in percent of their own plain IP.

    Columns: label, published, ours, low, high (the last three may be null).
    """
    order = frame["label"].to_list()
    words = ("published", "here")
    scale = altair.Scale(domain=list(words), range=[PALETTE[1], PALETTE[0]])
    shapes = altair.Scale(domain=list(words), range=["diamond", "circle"])
    rows = [
        {"label": row["label"], "value": row[column], "source": source}
        for row in frame.iter_rows(named=True)
        for column, source in zip(("published", "ours"), words, strict=True)
        if row[column] is not None
    ]
    vertical = altair.Y("label:N", title=None, sort=order, axis=_labels())
    horizontal = altair.X(
        "value:Q", title="percent of plain IP in the same study", axis=altair.Axis(format="~f", tickCount=6)
    )
    points = (
        altair.Chart(inline(polars.DataFrame(rows, infer_schema_length=None)))
        .mark_point(filled=True, size=80, opacity=1)
        .encode(
            y=vertical,
            x=horizontal,
            color=altair.Color("source:N", scale=scale, title=None),
            shape=altair.Shape("source:N", scale=shapes, title=None),
        )
    )
    known = frame.drop_nulls(["low", "high"])
    intervals = (
        altair.Chart(inline(known))
        .mark_rule(color=INK, strokeWidth=1.5)
        .encode(y=vertical, x="low:Q", x2="high:Q")
    )
    layers = [points] if known.is_empty() else [intervals, points]
    return altair.vconcat(altair.layer(*layers).properties(width=_WIDTH, height=altair.Step(24)))


def _line_panels(frame: polars.DataFrame) -> Iterator[tuple[str, polars.DataFrame]]:
    """A panel for each runtime; for each VPN in it, and some of its tunnels, where there are too many."""
    for runtime, rows in _by_runtime(frame):
        heading = panel_title(runtime)
        if rows["tunnel"].n_unique() <= MOST_LINES:
            yield heading, rows
            continue
        for vpn in rows["vpn"].unique(maintain_order=True):
            tunnels = rows.filter(vpn=vpn)["tunnel"].unique(maintain_order=True)
            for begin in range(0, len(tunnels), MOST_LINES):
                some = polars.col("tunnel").is_in(tunnels[begin : begin + MOST_LINES].to_list())
                yield f"{vpn}: {heading[0].lower()}{heading[1:]}", rows.filter(some)


def _lines(rows: polars.DataFrame, title: str, over: str, from_zero: bool) -> Panel:
    plain = polars.col("vpn") != BASELINE_VPN
    names = rows.select("tunnel", plain.alias("later")).unique().sort("later", "tunnel")["tunnel"].to_list()
    places = rows["place"].unique().sort().to_list()
    few = len(places) <= _MOST_LABELS
    axis = altair.Axis(format="~f", values=places) if few else altair.Axis(format="~f", tickCount=8)
    colour = altair.Color(
        "tunnel:N",
        scale=altair.Scale(domain=names, range=list(PALETTE[: len(names)])),
        title=None,
        legend=altair.Legend(columns=2, symbolType="circle"),
    )
    shape = altair.Shape(
        "tunnel:N", scale=altair.Scale(domain=names, range=list(_SHAPES[: len(names)])), title=None
    )
    base = altair.Chart(inline(rows)).encode(
        x=altair.X("place:Q", title=over, axis=axis, scale=altair.Scale(nice=False))
    )
    scale = altair.Scale(zero=from_zero)
    vertical = altair.Y("median:Q", title=title, axis=altair.Axis(format="~f", tickCount=6), scale=scale)
    line = base.mark_line(strokeWidth=2).encode(y=vertical, color=colour)
    marks = base.mark_point(filled=True, size=45, opacity=1).encode(y=vertical, color=colour, shape=shape)
    known = rows.drop_nulls(["low", "high"])
    if known.is_empty():
        return altair.layer(line, marks)
    intervals = (
        altair.Chart(inline(known))
        .mark_rule(strokeWidth=1.5)
        .encode(x="place:Q", y="low:Q", y2="high:Q", color=colour)
    )
    return altair.layer(line, intervals, marks)


def _columns(rows: polars.DataFrame, title: str, legend: str) -> Panel:
    bars = rows["bar"].unique(maintain_order=True).to_list()
    groups = rows["group"].unique(maintain_order=True).to_list()
    slanted = sum(map(len, groups)) > _LETTERS
    colours = [PALETTE[place % len(PALETTE)] for place in range(len(bars))]
    base = altair.Chart(inline(rows)).encode(
        x=altair.X(
            "group:N",
            sort=groups,
            title=None,
            axis=altair.Axis(labelAngle=-30 if slanted else 0, ticks=False, labelPadding=6),
        ),
        xOffset=altair.XOffset("bar:N", sort=bars),
    )
    column = base.mark_bar().encode(
        y=altair.Y("median:Q", title=title, axis=altair.Axis(format="~f", tickCount=6)),
        color=altair.Color(
            "bar:N",
            sort=bars,
            scale=altair.Scale(domain=bars, range=colours),
            title=legend,
            legend=altair.Legend(columns=3),
        ),
    )
    known = rows.drop_nulls(["low", "high"])
    if known.is_empty():
        return altair.layer(column)
    intervals = (
        altair.Chart(inline(known))
        .mark_rule(color=INK, strokeWidth=1.5)
        .encode(
            x=altair.X("group:N", sort=groups),
            xOffset=altair.XOffset("bar:N", sort=bars),
            y="low:Q",
            y2="high:Q",
        )
    )
    return altair.layer(column, intervals)


def _by_runtime(rows: polars.DataFrame) -> Iterator[tuple[str, polars.DataFrame]]:
    for runtime in rows["runtime"].unique().sort(descending=True):
        yield runtime, rows.filter(runtime=runtime)


def _by_arrival(rows: polars.DataFrame) -> list[str]:
    arrived = rows.filter(part="arrived").sort("value", descending=True)
    return arrived["tunnel"].to_list()


def _labels() -> altair.Axis:
    return altair.Axis(ticks=False, labelPadding=8)
