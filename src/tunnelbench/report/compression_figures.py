"""Pairs of columns: each tunnel without compression and with it, for one kind of payload."""

from __future__ import annotations

from collections.abc import Iterator

import polars

from tunnelbench.report import comparing
from tunnelbench.report.content import Content, Result, Section
from tunnelbench.report.drawing import Drawing, draw
from tunnelbench.report.scale import Scale
from tunnelbench.report.wording import number, point_slug
from tunnelbench.study.treatment import written_options

_OPTION = "compression"


def compression_figures(section: Section, content: Content) -> Iterator[Drawing]:
    """One figure with a panel for each kind of payload, where a tunnel was measured both ways."""
    twins = [
        twin
        for twin in content.sections
        if twin.point.model_copy(update={"content": section.point.content}) == section.point
    ]
    if section.point.content != min((twin.point.content or "" for twin in twins), default=""):
        return  # Drawn once for all kinds of payload.
    results = [result for twin in twins for result in twin.results if result.ranking is not None]
    rows = [row for twin in twins for row in _pairs(twin, Scale.of(results))]
    if not rows:
        return
    frame = polars.DataFrame(rows, infer_schema_length=None)
    scale = Scale.of(results)
    title = f"{scale.title(section.point.question)} without and with compression"
    spoken = "; ".join(
        f"{row['panel']}, {row['group']}, {row['bar']}: {number(row['median'])}"
        for row in frame.iter_rows(named=True)
    )
    chart = comparing.columns(frame, scale.axis(section.point.question), "compression")
    yield draw(chart, f"compression-{point_slug(section.point)}", title, f"{title}. {spoken}")


def _pairs(section: Section, scale: Scale) -> Iterator[dict[str, object]]:
    plain = {_without(result): result for result in section.results if not _level(result)}
    done: set[str] = set()
    for result in section.results:
        partner = plain.get(_without(result)) if _level(result) else None
        if partner is None:
            continue
        for member in (partner, result):
            values = scale.values(member)
            if values is None or (member is partner and partner.tunnel in done):
                continue
            done.add(member.tunnel)
            yield {
                "panel": f"Payload: {section.point.content or 'as the load has it'}",
                "group": f"{partner.tunnel} ({_level(result)})",
                "bar": "with" if _level(member) else "without",
                "median": values[0],
                "low": values[1],
                "high": values[2],
            }


def _level(result: Result) -> str | None:
    return result.treatment.option_levels().get(_OPTION)


def _without(result: Result) -> tuple[str, str]:
    levels = {name: level for name, level in result.treatment.option_levels().items() if name != _OPTION}
    return result.treatment.model_copy(update={"options": written_options(levels)}).key, result.runtime
