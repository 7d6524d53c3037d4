"""What a report writes besides its page."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import polars
import pytest
from synthetic_campaign import TUNNELS, write_campaign

from tunnelbench.errors import UserError
from tunnelbench.report.as_json import report_json
from tunnelbench.report.build import build_report, build_report_apart
from tunnelbench.report.content import Content
from tunnelbench.store.read import CampaignData

FIGURES = {
    "throughput-tcp-ipv4-131072-forward-engine",
    "ratio-tcp-ipv4-131072-forward-engine",
    "processor-tcp-ipv4-131072-forward-engine",
    "throughput-udp-ipv4-1400-max-forward-engine",
    "ratio-udp-ipv4-1400-max-forward-engine",
    "processor-udp-ipv4-1400-max-forward-engine",
    "latency-udp-ipv4-1400-max-forward-engine",
}


def test_figures_as_svg_and_png(report: Path) -> None:
    assert {path.stem for path in (report / "figures").glob("*.svg")} == FIGURES
    assert {path.stem for path in (report / "figures").glob("*.png")} == FIGURES
    for path in (report / "figures").glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


def test_labels_are_whole_and_inside(report: Path) -> None:
    path = report / "figures" / "throughput-tcp-ipv4-131072-forward-engine.svg"
    root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
    texts = ["".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")]
    for tunnel in TUNNELS:
        assert tunnel.tunnel.removesuffix("/none") in texts
    assert not [text for text in texts if "\N{HORIZONTAL ELLIPSIS}" in text]


def test_tables_can_be_read_back(report: Path, campaign: Path) -> None:
    tables = {
        path.stem: polars.read_csv(path, infer_schema_length=None)
        for path in (report / "tables").glob("*.csv")
    }
    raw = {"trials", "node_costs", "cells", "instances", "rekeys", "warnings", "packet_logs"}
    assert set(tables) == {"summary", "processor"} | raw
    with CampaignData(campaign) as data:
        assert tables["trials"]["value"].sum() == pytest.approx(data.trials()["value"].sum())
        assert len(tables["cells"]) == len(data.cells())
    assert set(tables["processor"]["node"]) == {"host1", "gw1", "gw2", "host2", "machine"}


def test_the_study_lies_beside_the_page(report: Path, content: Content) -> None:
    assert (report / "study.toml").read_text(encoding="utf-8") == content.campaign.study_toml


def test_json_says_the_same(content: Content) -> None:
    document = json.loads(report_json(content))
    assert document["outcomes"] == content.outcomes
    (first, *_) = document["results"]
    throughput = content.sections[0].results[0].throughput
    assert throughput is not None
    assert first["metrics"]["throughput"]["median"] == throughput.median
    assert first["tunnel"] == "open"
    assert len(document["results"]) == sum(len(section.results) for section in content.sections)


def test_a_report_can_be_built_again_and_while_the_campaign_runs(tmp_path: Path) -> None:
    write_campaign(tmp_path, rounds=1, tunnels=TUNNELS[:3])
    for _ in range(2):
        with CampaignData(tmp_path) as data:
            build_report(data, tmp_path / "report")
    assert (tmp_path / "report" / "report.html").is_file()


def test_a_report_built_apart(tmp_path: Path) -> None:
    write_campaign(tmp_path, rounds=1, tunnels=TUNNELS[:1])
    page = build_report_apart(tmp_path, tmp_path / "report")
    assert page == tmp_path / "report" / "report.html"
    assert "Invented numbers" in page.read_text(encoding="utf-8")
    with pytest.raises(UserError, match="no campaign") as caught:
        build_report_apart(tmp_path / "nowhere", tmp_path / "report")
    assert caught.value.advice


def test_a_place_that_cannot_be_written(campaign: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with CampaignData(campaign) as data, pytest.raises(UserError, match="can't be written"):
        build_report(data, tmp_path / "file" / "report")
