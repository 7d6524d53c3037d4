"""Columns for each cipher, side by side for each VPN or IP version that has it."""

from __future__ import annotations

from collections.abc import Iterator

import polars

from tunnelbench.report import comparing
from tunnelbench.report.content import Content, Result, Section
from tunnelbench.report.drawing import Drawing, draw
from tunnelbench.report.scale import Scale
from tunnelbench.report.wording import number, point_slug
from tunnelbench.study.treatment import WRITTEN_IP
from tunnelbench.study.wording import point_title

_MOST_COLUMNS = 48


def suite_figures(section: Section, content: Content) -> Iterator[Drawing]:
    """One figure, where at least two ciphers stand beside each other in at least two VPNs or IP versions."""
    results = [
        result
        for twin in content.sections
        if twin.point.model_copy(update={"ip": section.point.ip}) == section.point
        for result in twin.results
        if result.encrypted and result.ranking is not None
    ]
    scale = Scale.of(results)
    rows = [row for result in results if (row := _row(result, scale, _cipher(result, content))) is not None]
    shared = _shared(polars.DataFrame(rows, infer_schema_length=None)) if rows else polars.DataFrame()
    if shared.is_empty():
        return
    title = f"{scale.title(section.point.question)} by cipher"
    spoken = "; ".join(
        f"{row['group']}, {row['bar']}: {number(row['median'])}" for row in shared.iter_rows(named=True)
    )
    yield draw(
        comparing.columns(shared, scale.axis(section.point.question), "VPN"),
        f"ciphers-{point_slug(section.point)}",
        title,
        f"{title}, {point_title(section.point)}. {spoken}",
    )


def _row(result: Result, scale: Scale, cipher: str | None) -> dict[str, object] | None:
    values = scale.values(result)
    if cipher is None or values is None:
        return None
    bar = result.tunnel.replace(f"/{result.treatment.suite}", "", 1)
    return {
        "panel": scale.panel(result),
        "group": cipher,
        "bar": f"{bar}, {WRITTEN_IP[result.point.ip]}",
        "median": values[0],
        "low": values[1],
        "high": values[2],
    }


def _cipher(result: Result, content: Content) -> str | None:
    for record in content.cryptography:
        if record.treatment == result.treatment:
            return record.encryption
    return None


def _shared(rows: polars.DataFrame) -> polars.DataFrame:
    """Ciphers that more than one bar has, and bars that more than one of them have."""
    if rows["bar"].str.extract(r", (IPv\d)$").n_unique() == 1:
        rows = rows.with_columns(polars.col("bar").str.replace(r", IPv\d$", ""))
    # A VPN may have one cipher with several integrity checks: the fastest stands for it.
    best = rows.sort("median", descending=True).unique(
        ["panel", "group", "bar"], keep="first", maintain_order=True
    )
    common = best.filter(polars.col("bar").n_unique().over("panel", "group") > 1)
    wide = common.filter(polars.col("group").n_unique().over("panel", "bar") > 1)
    return wide.sort("group", "bar").head(_MOST_COLUMNS)
