"""What a report writes besides its page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from synthetic_campaign import TUNNELS, write_campaign

from tunnelbench.errors import UserError
from tunnelbench.report.as_json import report_json
from tunnelbench.report.build import build_report, build_report_apart
from tunnelbench.report.content import Content
from tunnelbench.store.read import CampaignData


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
    page, content = build_report_apart(tmp_path, tmp_path / "report")
    assert page == tmp_path / "report" / "report.html"
    assert content.sections
    assert "Invented numbers" in page.read_text(encoding="utf-8")
    with pytest.raises(UserError, match="no campaign") as caught:
        build_report_apart(tmp_path / "nowhere", tmp_path / "report")
    assert caught.value.advice


def test_a_place_that_cannot_be_written(campaign: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with CampaignData(campaign) as data, pytest.raises(UserError, match="can't be written"):
        build_report(data, tmp_path / "file" / "report")
