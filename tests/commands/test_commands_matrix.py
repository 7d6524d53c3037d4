from __future__ import annotations

import json
from pathlib import Path

import pytest

from tunnelbench.campaign.proving import Finding, attempt_of
from tunnelbench.commands.matrix import Book, as_row
from tunnelbench.errors import UserError
from tunnelbench.tunnels import all_tunnels


def row(vpn: str, image: str, outcome: str = "works") -> dict[str, object]:
    tunnel = all_tunnels()[vpn]
    found = Finding(attempt_of(tunnel, image, next(iter(tunnel.suites))), "works", None, "namespace", 1.0)
    return {**as_row(found), "outcome": outcome}


def test_a_row_is_on_disk_as_soon_as_it_is_added(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    book = Book.open(path)
    book.add(row("gre", "bookworm"))
    assert [entry["vpn"] for entry in json.loads(path.read_text())] == ["gre"]


def test_a_second_run_replaces_what_it_tries_again_and_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "found.json"
    for vpn, image in (("gre", "bookworm"), ("gre", "trixie"), ("ipip", "bookworm")):
        Book.open(path).add(row(vpn, image))
    Book.open(path).add(row("gre", "trixie", "fails"))
    found = [(entry["vpn"], entry["image"], entry["outcome"]) for entry in json.loads(path.read_text())]
    assert found == [
        ("gre", "bookworm", "works"),
        ("gre", "trixie", "fails"),
        ("ipip", "bookworm", "works"),
    ]


@pytest.mark.parametrize(("outcome", "settled"), [("works", True), ("blocked", True), ("fails", False)])
def test_what_failed_is_not_settled(tmp_path: Path, outcome: str, settled: bool) -> None:
    book = Book.open(tmp_path / "found.json")
    attempt = attempt_of(all_tunnels()["gre"], "bookworm", "none")
    assert not book.settles(attempt)
    book.add(row("gre", "bookworm", outcome))
    assert book.settles(attempt) is settled
    assert not book.settles(attempt_of(all_tunnels()["gre"], "trixie", "none"))


@pytest.mark.parametrize("text", ["nothing", "{}", "[1]", '[{"vpn": "gre"}]'])
def test_another_kind_of_file_is_not_overwritten(tmp_path: Path, text: str) -> None:
    path = tmp_path / "notes.json"
    path.write_text(text)
    with pytest.raises(UserError, match="is not what"):
        Book.open(path)
    assert path.read_text() == text
