"""Campaigns in notebooks: the reference page does what it says, and frames have what they promise."""

from __future__ import annotations

import doctest
import shutil
from pathlib import Path

import pytest

import tunnelbench
from tunnelbench.errors import UserError

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api.md"


def test_the_reference_page(campaign: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(campaign, tmp_path / "result")
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(PAGE), module_relative=False, encoding="utf-8")
    assert found.attempted > 8
    assert found.failed == 0


def test_every_frame_has_rows(campaign: Path) -> None:
    opened = tunnelbench.open(campaign)
    frames = [opened.trials(), opened.node_costs(), opened.instances(), opened.cells(), opened.warnings()]
    frames += [opened.summary(), opened.tiers(), opened.why()]
    assert all(frame.height > 0 for frame in frames)
    assert opened.series(1).height == 0
    assert opened.tiers()["tier"].min() == 1


def test_no_campaign(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no campaign"):
        tunnelbench.open(str(tmp_path))
