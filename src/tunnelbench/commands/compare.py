"""`tunnelbench compare`: what has changed from one campaign to another, for people and for CI."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import polars
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tunnelbench.errors import UserError
from tunnelbench.store.read import CampaignData
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import parse_ratio
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.wording import metric_words

if TYPE_CHECKING:
    from tunnelbench.analysis.regression import Change, Comparison
    from tunnelbench.analysis.warnings import MeasuredCell

Levels = TypeVar("Levels", Treatment, Point)

_STYLES = {"worse": "bold red", "better": "green", "unchanged": "", "undecided": "yellow"}


def compare_command(
    before: Annotated[Path, typer.Argument(help="The directory of the campaign to compare with.")],
    after: Annotated[Path, typer.Argument(help="The directory of the later campaign.")],
    least: Annotated[
        str, typer.Option(help="The smallest change that matters; no smaller one is a regression.")
    ] = "1%",
    relative: Annotated[
        bool, typer.Option("--relative", help="Compare ratios to plain IP: for two machines or a noisy one.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what has become worse or better from one campaign to another, cell by cell.

    Fails with status 1 if a cell has become worse, or has no number any more though it was tried.
    """
    # Here, since it takes scipy, which takes memory and seconds that other commands don't have.
    from tunnelbench.analysis.regression import compare

    smallest = _least(least)
    with CampaignData(before) as old, CampaignData(after) as new:
        found = compare(old.trials(), new.trials(), smallest, relative)
        lost = _lost(found.only_before, new)
    if not found.changes and not lost:
        raise UserError(
            f"{before} and {after} have no cell in common",
            advice="Compare campaigns of the same study, or of studies that share tunnels and traffic.",
        )
    result = _Result(found, lost)
    if as_json:
        typer.echo(json.dumps(_as_data(result), indent=2))
    else:
        _show(result, relative)
    raise typer.Exit(1 if result.is_regression else 0)


@dataclass(frozen=True)
class _Result:
    comparison: Comparison
    lost: tuple[MeasuredCell, ...]
    """Cells that had numbers, were tried again, and have none."""

    @property
    def is_regression(self) -> bool:
        return bool(self.lost) or any(change.verdict == "worse" for change in self.comparison.changes)


def _least(text: str) -> float:
    try:
        return parse_ratio(text)
    except ValueError as error:
        raise UserError(f"--least: {error}") from None


def _lost(only_before: Iterable[MeasuredCell], after: CampaignData) -> tuple[MeasuredCell, ...]:
    """Those that the later campaign asks for, and whose tunnel it tried to bring up to the end."""
    asked = {
        (_model(Treatment, row), _model(Point, row))
        for row in after.cells().filter(polars.col("skipped").is_null()).iter_rows(named=True)
    }
    ended = after.instances().filter(polars.col("status").is_in(["refused", "failed", "proven"]))
    tried = {(_model(Treatment, row), row["runtime"]) for row in ended.iter_rows(named=True)}
    return tuple(
        cell
        for cell in only_before
        if (cell.treatment, cell.point) in asked and (cell.treatment, cell.runtime) in tried
    )


def _model(kind: type[Levels], row: dict[str, Any]) -> Levels:
    return kind.model_validate({column: row[column] for column in kind.model_fields})


def _show(result: _Result, relative: bool) -> None:
    comparison = result.comparison
    console = Console()
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("Tunnel, traffic, metric", overflow="fold")
    for heading in ("before", "after", "after/before", "95 % interval", ""):
        table.add_column(heading, justify="right")
    for change in comparison.changes:
        table.add_row(
            Text(f"{change.cell}, {metric_words(change.metric)}{' of plain IP' if relative else ''}"),
            *_numbers(change),
            Text(change.verdict, _STYLES[change.verdict]),
        )
    console.print(table)
    for cell in result.lost:
        console.print(Text(f"{cell}: no number any more", "bold red"), soft_wrap=True)
    others = len(comparison.only_before) - len(result.lost)
    if others or comparison.only_after:
        console.print(f"Not compared: {others} cells only before, {len(comparison.only_after)} only after.")
    worse = sum(change.verdict == "worse" for change in comparison.changes) + len(result.lost)
    said = f"Worse: {worse} of {len(comparison.changes) + len(result.lost)} cells."
    console.print(Text(said, "bold red" if worse else "bold"))


def _numbers(change: Change) -> tuple[str, str, str, str]:
    low, high = change.low, change.high
    interval = "\N{EN DASH}" if low is None or high is None else f"{low:.3f} to {high:.3f}"
    return f"{change.before:.4g}", f"{change.after:.4g}", f"{change.ratio:.3f}", interval


def _as_data(result: _Result) -> dict[str, Any]:
    comparison = result.comparison
    return {
        "regression": result.is_regression,
        "changes": [
            {
                **_cell_data(change.cell),
                "metric": change.metric,
                "before": change.before,
                "after": change.after,
                "n_before": change.n_before,
                "n_after": change.n_after,
                "ratio": change.ratio,
                "low": change.low,
                "high": change.high,
                "p_value": change.p_value,
                "verdict": change.verdict,
            }
            for change in comparison.changes
        ],
        "lost": [_cell_data(cell) for cell in result.lost],
        "only_before": [_cell_data(cell) for cell in comparison.only_before],
        "only_after": [_cell_data(cell) for cell in comparison.only_after],
    }


def _cell_data(cell: MeasuredCell) -> dict[str, Any]:
    treatment, point = cell.treatment, cell.point
    return {
        "tunnel": treatment.tunnel,
        **treatment.model_dump(),
        "runtime": cell.runtime,
        **point.model_dump(mode="json"),
    }
