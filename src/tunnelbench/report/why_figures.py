"""Stacks from the link's rate down to what arrived, for each headline point."""

from __future__ import annotations

from collections.abc import Iterator

import polars

from tunnelbench.report import comparing
from tunnelbench.report.content import Content, Explained
from tunnelbench.report.drawing import Drawing, draw
from tunnelbench.report.wording import number, point_slug
from tunnelbench.study.points import Point
from tunnelbench.study.wording import point_title


def why_figures(content: Content) -> Iterator[Drawing]:
    """One figure for each point with reasons."""
    by_point: dict[Point, list[Explained]] = {}
    for one in content.explained:
        if not one.result.treatment.is_baseline and one.why.ceilings:
            by_point.setdefault(one.result.point, []).append(one)
    for point, found in by_point.items():
        frame = polars.DataFrame([row for one in found for row in _rows(one)], infer_schema_length=None)
        title = f"{point_title(point)}: from what is possible down to what arrived, in Mbit/s"
        spoken = "; ".join(
            f"{one.result.tunnel} {number(one.why.throughput)} of {number(top.mbit_per_second)}"
            for one in found
            for top in one.why.ceilings[:1]
        )
        name = f"why-{point_slug(point)}"
        yield draw(comparing.stack(frame), name, title, f"{title}. {spoken}")


def _rows(one: Explained) -> Iterator[dict[str, object]]:
    """What arrived, and for each part by how much its ceiling is lower than the one above it."""
    heights = [ceiling.mbit_per_second for ceiling in one.why.ceilings]
    place = {"tunnel": one.result.tunnel, "runtime": one.result.runtime}
    yield {**place, "part": "arrived", "value": one.why.throughput}
    yield {**place, "part": "unexplained", "value": heights[-1] - one.why.throughput}
    # The highest ceiling is the top of the stack, and takes nothing away.
    for ceiling, above in zip(one.why.ceilings[1:], heights, strict=False):
        yield {**place, "part": ceiling.part, "value": above - ceiling.mbit_per_second}
