"""The command line for all tests of commands."""

from __future__ import annotations

import pytest
from command_line import CommandLine


@pytest.fixture
def tunnelbench(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """`tunnelbench`, to be called with its arguments."""
    return CommandLine(monkeypatch, capsys)
