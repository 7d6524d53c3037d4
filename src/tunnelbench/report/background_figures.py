"""Delays of the same traffic alone and beside a background: what load on the path adds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import polars

from tunnelbench.report import figures
from tunnelbench.report.content import Result, Section
from tunnelbench.report.drawing import Drawing, draw
from tunnelbench.report.wording import milliseconds, point_slug, runtime_title
from tunnelbench.study.points import Point, Question
from tunnelbench.study.wording import background_words, point_title

Loads = Sequence[Section]
"""Sections whose points differ in the background alone, the one without first."""

_TIMES: Mapping[Question, tuple[str, str]] = {
    "delay": ("latency", "one-way delay"),
    "round trip": ("round_trip", "round trip"),
    "transactions": ("round_trip", "round trip"),
}
"""Of traffic that can have a background: how the names of its times begin, and the words for them."""
_QUANTILES = ("p50", "p99")


def loads(sections: Iterable[Section]) -> list[Loads]:
    """Those of which at least two were measured."""
    found: dict[Point, list[Section]] = {}
    for section in sections:
        found.setdefault(section.point.without_background, []).append(section)
    return [members for members in found.values() if len(members) > 1]


def loads_title(of_one_kind: Loads) -> str:
    """The traffic in words, without what is beside it."""
    return point_title(of_one_kind[0].point.without_background)


def background_figures(of_one_kind: Loads) -> Iterator[Drawing]:
    """One figure, where there are times to draw."""
    point = of_one_kind[0].point.without_background
    metric, what = _TIMES[point.question]
    rows = [
        row
        for section in of_one_kind
        for result in section.results
        for row in _rows(result, metric, background_words(section.point.background))
    ]
    if not rows:
        return
    title = f"{what[0].upper()}{what[1:]} in ms, alone and beside a background"
    alternative = f"{title}, {loads_title(of_one_kind)}. {_spoken(rows)}"
    chart = figures.loaded(polars.DataFrame(rows, infer_schema_length=None), what)
    yield draw(chart, f"background-{point_slug(point)}", title, alternative)


def _rows(result: Result, metric: str, background: str) -> Iterator[dict[str, object]]:
    for quantile in _QUANTILES:
        estimate = result.metrics.get(f"{metric}_{quantile}")
        if estimate is not None and estimate.median > 0:
            yield {
                "tunnel": result.tunnel,
                "runtime": result.runtime,
                "background": background,
                "quantile": quantile,
                "value": estimate.median,
            }


def _spoken(rows: Iterable[Mapping[str, object]]) -> str:
    """Of each tunnel the medians."""
    medians: dict[tuple[object, object], list[str]] = {}
    for row in rows:
        if row["quantile"] == "p50":
            value = row["value"]
            assert isinstance(value, float)
            medians.setdefault((row["tunnel"], row["runtime"]), []).append(
                f"{row['background']} {milliseconds(value)}"
            )
    return ". ".join(
        f"{tunnel}, {runtime_title(str(runtime))}: {', '.join(words)}"
        for (tunnel, runtime), words in medians.items()
    )
