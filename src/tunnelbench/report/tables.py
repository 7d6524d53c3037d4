"""Writes the tables of a report as CSV, for spreadsheets and statistics programs."""

from __future__ import annotations

from pathlib import Path

from tunnelbench.report.content import Content
from tunnelbench.store.read import CampaignData


def write_tables(data: CampaignData, content: Content, folder: Path) -> None:
    """Write summary, processor, trials, node_costs, cells, instances, rekeys, warnings and packet_logs.

    `summary.csv` and `processor.csv` have one row per cell, runtime and metric (or node); `trials.csv` and
    `node_costs.csv` are the raw numbers in long format.
    """
    frames = {
        "summary": content.summary,
        "processor": content.processor.rename({"metric": "node"}),
        "trials": data.trials(),
        "node_costs": data.node_costs(),
        "cells": data.cells(),
        "instances": data.instances(),
        "rekeys": data.rekeys(),
        "warnings": data.warnings(),
        "packet_logs": data.packet_logs(),
    }
    for name, frame in frames.items():
        frame.write_csv(folder / f"{name}.csv")
