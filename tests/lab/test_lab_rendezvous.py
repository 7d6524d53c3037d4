"""Where open labs are found: names are claimed once, and nobody else's directory is trusted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tunnelbench.errors import UserError
from tunnelbench.lab import rendezvous


@pytest.fixture(autouse=True)
def runtime_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "tunnelbench"


def test_a_name_is_claimed_once_and_free_again_after_its_release() -> None:
    with rendezvous.claim("one"), rendezvous.claim("two"):
        assert rendezvous.open_labs() == ["one", "two"]
        with pytest.raises(UserError, match="lab one is up already"):
            rendezvous.claim("one")
        rendezvous.release("one")
        rendezvous.claim("one").close()


def test_nothing_is_left_after_the_last_release(runtime_directory: Path) -> None:
    with rendezvous.claim("one"):
        rendezvous.release("one")
    assert not runtime_directory.exists()
    rendezvous.release("one")


def test_what_a_killed_process_left_is_shown_then_swept_up(runtime_directory: Path) -> None:
    rendezvous.claim("killed").close()
    assert rendezvous.labs_by_state() == {"killed": False}
    with pytest.raises(UserError, match="no lab named killed is up"):
        rendezvous.connect("killed")
    assert not runtime_directory.exists()


def test_a_killed_labs_name_can_be_claimed_at_once() -> None:
    rendezvous.claim("killed").close()
    with rendezvous.claim("killed"):
        assert rendezvous.open_labs() == ["killed"]


@pytest.mark.parametrize("name", ["", "../up", "a/b", "-x", "a b", "x" * 41, "a\0"])
def test_names_that_are_no_file_names_are_refused(name: str) -> None:
    with pytest.raises(UserError, match="can't name a lab"):
        rendezvous.claim(name)


def test_a_directory_that_others_can_use_is_not_trusted(runtime_directory: Path) -> None:
    runtime_directory.mkdir(mode=0o755)
    with pytest.raises(UserError, match="not a directory of yours alone"):
        rendezvous.claim("one")


def test_a_link_in_the_directorys_place_is_not_followed(runtime_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    runtime_directory.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match="not a directory of yours alone"):
        rendezvous.claim("one")


def test_a_path_too_long_for_a_socket_is_explained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with pytest.raises(UserError, match="too long"):
        rendezvous.claim("one")


def test_a_runtime_directory_that_is_not_there_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/no/such/directory")
    assert rendezvous.runtime_directory().parent == Path("/tmp")


def test_the_process_behind_a_connection_is_known() -> None:
    with rendezvous.claim("one"), rendezvous.connect("one") as stream:
        assert rendezvous.process_behind(stream) == os.getpid()
