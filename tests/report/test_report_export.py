"""What an export writes: figures, tables, data."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import polars
import pytest
from synthetic_campaign import TUNNELS

from tunnelbench.errors import UserError
from tunnelbench.report.export import export
from tunnelbench.report.table_files import TableFile
from tunnelbench.store.read import CampaignData

TCP = "tcp-ipv4-131072-forward-engine"
UDP = "udp-ipv4-1400-max-forward-engine"
FIGURES = {
    *(f"{kind}-{TCP}" for kind in ("throughput", "ratio", "processor", "ciphers", "why")),
    *(f"{kind}-{UDP}" for kind in ("throughput", "ratio", "processor", "latency", "ciphers", "why")),
}


@pytest.fixture(scope="module")
def exported(campaign: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of the invented campaign's export."""
    out = tmp_path_factory.mktemp("export")
    with CampaignData(campaign) as data:
        export(data, out)
    return out


@pytest.mark.parametrize(("ending", "magic"), [("svg", b"<svg"), ("pdf", b"%PDF"), ("png", b"\x89PNG")])
def test_figures(exported: Path, ending: str, magic: bytes) -> None:
    files = list((exported / "figures").glob(f"*.{ending}"))
    assert {path.stem for path in files} <= FIGURES
    assert f"throughput-{TCP}" in {path.stem for path in files}
    assert all(path.read_bytes().startswith(magic) for path in files)


def test_labels_are_whole_and_inside(exported: Path) -> None:
    path = exported / "figures" / f"throughput-{TCP}.svg"
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for tunnel in TUNNELS:
        assert tunnel.tunnel.removesuffix("/none") in texts
    assert not [text for text in texts if "\N{HORIZONTAL ELLIPSIS}" in text]


def test_tables_say_the_same_in_every_form(exported: Path) -> None:
    name = f"results-{TCP}"
    with (exported / "tables" / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    latex = (exported / "tables" / f"{name}.tex").read_text(encoding="utf-8")
    markdown = (exported / "tables" / f"{name}.md").read_text(encoding="utf-8")
    assert latex.count(r" \\") == len(rows)
    assert markdown.count("\n|") == len(rows) + 1
    assert "openvpn/aes-256-gcm" in {row[0] for row in rows}


def test_data_is_whole(exported: Path, campaign: Path) -> None:
    frames = {path.stem: polars.read_parquet(path) for path in (exported / "data").glob("*.parquet")}
    raw = {"trials", "node_costs", "cells", "instances", "rekeys", "warnings", "packet_logs"}
    assert set(frames) == {"summary", "processor"} | raw
    with CampaignData(campaign) as data:
        assert frames["trials"].equals(data.trials())
        assert frames["node_costs"].equals(data.node_costs())
    assert set(frames["processor"]["node"]) == {"host1", "gw1", "gw2", "host2", "machine"}


def test_latex_and_markdown_mean_what_they_say() -> None:
    table = TableFile("t", "50 % of a_b", ("Name", "x|y"), [("a_b & c", "1\N{EN DASH}2")])
    assert r"a\_b \& c & 1--2 \\" in table.latex()
    assert r"\caption{50 \% of a\_b}" in table.latex()
    assert r"| Name | x\|y |" in table.markdown()


def test_a_place_that_cannot_be_written(campaign: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with CampaignData(campaign) as data, pytest.raises(UserError, match="can't be written"):
        export(data, tmp_path / "file" / "export")
