"""Ctrl-C: what is finished is kept and reported, and the user is told how to go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import CommandLine
from small_campaign import write_campaign

from tunnelbench.commands import run


@pytest.fixture(autouse=True)
def _interrupted(monkeypatch: pytest.MonkeyPatch) -> None:  # pyright: ignore[reportUnusedFunction]
    """Every campaign is stopped as asyncio stops one on Ctrl-C."""

    async def stopped(*_: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "resume", stopped)


def test_finished_trials_have_their_report(tmp_path: Path, tunnelbench: CommandLine) -> None:
    write_campaign(tmp_path)
    outcome = tunnelbench("resume", str(tmp_path))
    assert outcome.status == 130
    assert f"Go on with: tunnelbench resume {tmp_path}" in outcome.errors
    assert f"Report of what is finished: {tmp_path / 'report.html'}" in outcome.errors
    assert (tmp_path / "report.html").is_file()


def test_without_a_trial_there_is_no_report(tmp_path: Path, tunnelbench: CommandLine) -> None:
    write_campaign(tmp_path, trials=False)
    outcome = tunnelbench("resume", str(tmp_path))
    assert outcome.status == 130
    assert f"Go on with: tunnelbench resume {tmp_path}" in outcome.errors
    assert not (tmp_path / "report.html").exists()


def test_before_a_campaign_there_is_nothing_to_go_on_with(tmp_path: Path, tunnelbench: CommandLine) -> None:
    outcome = tunnelbench("resume", str(tmp_path))
    assert (outcome.status, outcome.output) == (130, "")
    assert outcome.errors.strip() == "Stopped before the first trial."
