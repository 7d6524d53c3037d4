"""`tunnelbench export`: a campaign's figures, tables and data as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tunnelbench.store.read import CampaignData


def export_command(
    directory: Annotated[Path, typer.Argument(help="The directory of a campaign.")],
    out: Annotated[Path, typer.Option(help="Where to put the files.")],
) -> None:
    """Write figures (SVG, PDF, PNG), tables (CSV, LaTeX, Markdown) and data (Parquet) of a campaign."""
    # Here, since what draws takes time to load that other commands don't need.
    from tunnelbench.report.export import export

    console = Console(stderr=True)
    with CampaignData(directory) as data, console.status("Writing figures, tables and data"):
        export(data, out)
    console.print(f"Exported to {out}", markup=False, highlight=False, soft_wrap=True)
