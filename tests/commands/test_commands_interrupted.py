"""Ctrl-C: what is finished is kept and reported, and the user is told how to go on."""

from __future__ import annotations

import asyncio
import os
import signal
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


def test_a_second_one_does_not_break_off_what_is_taken_down(
    tmp_path: Path, tunnelbench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken_down: list[str] = []

    async def impatient(*_: object) -> str:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(60)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.05)
            taken_down.append("all")
        return "never"

    write_campaign(tmp_path, trials=False)
    monkeypatch.setattr(run, "resume", impatient)
    outcome = tunnelbench("resume", str(tmp_path))
    assert (outcome.status, taken_down) == (130, ["all"])
    assert "Stopping already" in outcome.errors
    assert f"Go on with: tunnelbench resume {tmp_path}" in outcome.errors


def test_one_while_the_report_is_written_leaves_it_out(
    tmp_path: Path, tunnelbench: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> Path:
        raise KeyboardInterrupt

    write_campaign(tmp_path)
    monkeypatch.setattr(run, "build_report", interrupted)
    outcome = tunnelbench("resume", str(tmp_path))
    assert outcome.status == 130
    assert f"The report was not written: tunnelbench report {tmp_path}" in outcome.errors


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
