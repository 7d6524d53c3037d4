"""Published values beside ours, both in percent of their own plain IP."""

from __future__ import annotations

from collections.abc import Iterator

import polars

from tunnelbench.report import comparing
from tunnelbench.report.content import Content
from tunnelbench.report.drawing import Drawing, draw
from tunnelbench.report.wording import number

_MOST = 40
"""Values in one figure; the table has all."""


def beside_figures(content: Content) -> Iterator[Drawing]:
    """One figure, where a published value has a counterpart here and both have their plain IP."""
    if content.reproduction is None:
        return
    rows = [
        {
            "label": f"{beside.at} ({beside.where})",
            "published": 100 * beside.published_ratio,
            "ours": 100 * beside.ratio,
            "low": None if beside.ratio_low is None else 100 * beside.ratio_low,
            "high": None if beside.ratio_high is None else 100 * beside.ratio_high,
        }
        for beside in content.reproduction.besides
        if beside.published_ratio is not None and beside.ratio is not None
    ][:_MOST]
    if not rows:
        return
    title = "Published values beside ours, in percent of plain IP in the same study"
    frame = polars.DataFrame(rows, infer_schema_length=None)
    spoken = "; ".join(
        f"{row['label']}: published {number(row['published'])}, here {number(row['ours'])}"
        for row in frame.iter_rows(named=True)
    )
    yield draw(comparing.beside(frame), "published", title, f"{title}. {spoken}")
