"""Writes a campaign's figures, tables and data as files for papers, spreadsheets and programs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import polars

from tunnelbench.errors import UserError
from tunnelbench.report.collect import collect
from tunnelbench.report.illustrations import illustrate
from tunnelbench.report.table_files import table_files
from tunnelbench.store.read import CampaignData


def export(data: CampaignData, out: Path) -> None:
    """Write `figures/*.svg|pdf|png`, `tables/*.csv|tex|md` and `data/*.parquet` into `out`.

    Tables are those of the report, written for people; data is every number in full, one file for each of
    `data_frames`. `out` is made if it is missing. Raises UserError if it can't be written.
    """
    content = collect(data)
    try:
        for folder in ("figures", "tables", "data"):
            (out / folder).mkdir(parents=True, exist_ok=True)
        for drawing in illustrate(content).all:
            drawing.write(out / "figures")
        for table in table_files(content):
            table.write(out / "tables")
        for name, frame in data_frames(data, content.summary, content.processor).items():
            frame.write_parquet(out / "data" / f"{name}.parquet")
    except OSError as error:
        raise UserError(
            f"The export can't be written to {out}: {error.strerror}.",
            advice="Free space there or choose another place.",
        ) from error


def data_frames(
    data: CampaignData, summary: polars.DataFrame, processor: polars.DataFrame
) -> Mapping[str, polars.DataFrame]:
    """All data by name: one row per cell and metric in `summary` and `processor`, otherwise as stored."""
    return {
        "summary": summary,
        "processor": processor.rename({"metric": "node"}),
        "trials": data.trials(),
        "node_costs": data.node_costs(),
        "cells": data.cells(),
        "instances": data.instances(),
        "rekeys": data.rekeys(),
        "warnings": data.warnings(),
        "packet_logs": data.packet_logs(),
    }
