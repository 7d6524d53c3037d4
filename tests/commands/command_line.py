"""Runs the command line inside the test's process, as a user would call it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import pytest

from tunnelbench.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command printed, and its exit status."""

    status: int
    output: str
    errors: str


class CommandLine:
    """Calls `tunnelbench` with everything that its entry point does, messages for bad input included."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, captured: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._captured = captured

    def __call__(self, *arguments: str) -> Outcome:
        """Runs one command to its end; an exception that `main` lets through fails the test."""
        self._monkeypatch.setattr(sys, "argv", ["tunnelbench", *arguments])
        self._captured.readouterr()
        try:
            main()
            status = 0
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        printed = self._captured.readouterr()
        return Outcome(status, printed.out, printed.err)
