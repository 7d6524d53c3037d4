"""How trials went over time: a small drawing for each cell, of the trial nearest to its median."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import polars
from markupsafe import Markup, escape

from tunnelbench.analysis.frames import POINT, TREATMENT
from tunnelbench.report.content import Course, Section
from tunnelbench.report.wording import number
from tunnelbench.store.read import CampaignData
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment

MOST = 120
"""Courses of one report."""
SERIES = {
    "throughput": "Mbit/s",
    "throughput_forward": "Mbit/s forward",
    "transactions_per_second": "transactions per second",
    "packets_per_second": "packets per second",
}
"""Series by name with their unit; the first of these that a trial has is drawn."""
_MOST_SAMPLES = 240
_WIDTH, _HEIGHT = 480, 60


def courses(sections: Iterable[Section], data: CampaignData, typical: polars.DataFrame) -> Iterator[Course]:
    """One course for each result of these sections that has a series, and at most MOST of them."""
    sections = list(sections)
    trials = {
        (
            Treatment.model_validate({column: row[column] for column in TREATMENT}),
            row["runtime"],
            Point.model_validate({column: row[column] for column in POINT}),
        ): row["trial"]
        for row in _at(sections, typical).iter_rows(named=True)
    }
    results = [result for section in sections for result in section.results]
    for result in results[:MOST]:
        trial = trials.get((result.treatment, result.runtime, result.point))
        if trial is None:
            continue
        series = data.series(trial)
        metric = next((name for name in SERIES if series.get(name)), None)
        if metric is not None:
            yield Course(result, trial, metric, tuple(thinned(series[metric])))


def thinned(samples: list[float]) -> list[float]:
    """Means of neighbours, as many of them together as it takes to be few."""
    together = max(1, -(-len(samples) // _MOST_SAMPLES))
    parts = [samples[begin : begin + together] for begin in range(0, len(samples), together)]
    return [sum(part) / len(part) for part in parts]


def drawn(course: Course) -> Markup:
    """The course as an SVG element: a line over time, from zero up."""
    low, high = min(course.samples), max(course.samples)
    step = _WIDTH / max(len(course.samples) - 1, 1)
    points = " ".join(
        f"{place * step:.0f},{_HEIGHT * (1 - sample / (high or 1.0)):.1f}"
        for place, sample in enumerate(course.samples)
    )
    spoken = f"{course.result.tunnel} over time, from {number(low)} to {number(high)} {SERIES[course.metric]}"
    return Markup(
        f'<svg class="course" viewBox="0 -2 {_WIDTH} {_HEIGHT + 4}" role="img" aria-label="{escape(spoken)}">'
        f'<line x1="0" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}" stroke="var(--line)"/>'
        f'<polyline fill="none" stroke="var(--accent)" stroke-width="1.5" points="{points}"/></svg>'
    )


def _at(sections: Iterable[Section], typical: polars.DataFrame) -> polars.DataFrame:
    """The rows of these points alone; there may be hundreds of others."""
    levels = [section.point.model_dump() for section in sections]
    points = polars.DataFrame(levels, schema={factor: typical.schema[factor] for factor in POINT})
    return typical.join(points, on=POINT, how="semi", nulls_equal=True)
