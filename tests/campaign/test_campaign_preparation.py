"""What a study can be measured on, where that can be said without a node."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tunnelbench.campaign.campaign import Wish, start
from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.campaign.observer import Silent
from tunnelbench.campaign.preparation import survey
from tunnelbench.lab.image import DESCRIPTION, Image
from tunnelbench.store.read import CampaignData
from tunnelbench.study.cells import expand
from tunnelbench.study.reading import parse_study

BEHIND_WIFI = """
[study]
id = "one"
title = "One"
question = "Which?"

[factors]
tunnel = ["ipsec-manual/aes128-sha1"]

[link]
wifi_rate = "100 Mbit/s"
"""
REASON = (
    "no image has a kernel that simulates Wi-Fi, a hop of which is in the study's link; this brings one: "
    "tunnelbench image build bookworm-source --release bookworm --kernel source"
)


@pytest.fixture(autouse=True)
def _without_radios(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One image, with Debian's own kernel."""
    monkeypatch.setenv("TUNNELBENCH_CACHE", str(tmp_path))
    directory = tmp_path / "images/bookworm"
    directory.mkdir(parents=True)
    image = Image(
        name="bookworm",
        release="bookworm",
        directory=directory,
        suites=("bookworm",),
        kernel="/usr/bin/linux.uml",
        kernel_version="6.1",
        modules_version="6.1",
        packages={},
        built_at=datetime(2026, 1, 1, tzinfo=UTC),
    )
    (directory / DESCRIPTION).write_text(image.model_dump_json())


async def test_without_radios_nothing_behind_wifi_can_run() -> None:
    study = parse_study(BEHIND_WIFI, "one.toml", catalogue())
    grounds = await survey(study, expand(study, catalogue()))
    assert (grounds.runtimes, grounds.wifi) == ({}, None)
    assert {placement.reason for placement in grounds.placements.values()} == {REASON}


async def test_a_campaign_behind_wifi_without_radios_skips_all_with_the_reason(tmp_path: Path) -> None:
    await start(BEHIND_WIFI, "one.toml", tmp_path / "out", Wish(rounds=2), Silent())
    with CampaignData(tmp_path / "out") as data:
        assert set(data.instances().select("status", "reason").rows()) == {("skipped", REASON)}
        assert data.trials().is_empty()
