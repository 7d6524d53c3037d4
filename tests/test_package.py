"""The installed package, as `pip install` leaves it: complete, and its agent fit for every image."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def distribution() -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution("tunnelbench")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("tunnelbench runs from its sources here; `make test` installs it")


@pytest.fixture(scope="module")
def installed(distribution: importlib.metadata.Distribution) -> dict[str, Path]:
    return {str(file): Path(str(file.locate())) for file in distribution.files or ()}


def test_every_file_of_the_sources_is_installed(installed: dict[str, Path]) -> None:
    source = Path(__file__).parent.parent / "src"
    generated = ("__pycache__", "bin")
    files = [path for path in source.rglob("*") if path.is_file() and path.parent.name not in generated]
    assert len(files) > 20
    assert sorted({str(path.relative_to(source)) for path in files} - installed.keys()) == []


def test_the_agent_is_inside_and_needs_no_library(installed: dict[str, Path]) -> None:
    agent = installed["tunnelbench/bin/tbnode"]
    assert os.access(agent, os.X_OK)
    assert agent.read_bytes()[:4] == b"\x7fELF"
    # A dynamically linked program would name libraries that images with another C library don't have.
    listed = subprocess.run(["ldd", str(agent)], capture_output=True, text=True)
    assert "statically linked" in listed.stdout + listed.stderr or "not a dynamic" in listed.stderr, (
        listed.stdout
    )


def test_the_commands_are_declared(distribution: importlib.metadata.Distribution) -> None:
    commands = [entry for entry in distribution.entry_points if entry.group == "console_scripts"]
    assert {command.name for command in commands} == {"tbnode", "tunnelbench"}
    assert all(callable(command.load()) for command in commands)
