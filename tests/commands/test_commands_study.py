"""`tunnelbench study`, without labs: tunnels are assumed to run somewhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine
from small_campaign import write_campaign

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.study.cells import expand
from tunnelbench.study.library import bundled
from tunnelbench.study.reading import read_study

Printed = Callable[..., str]


@pytest.fixture
def printed(tunnelbench: CommandLine) -> Printed:
    def run(*arguments: str) -> str:
        outcome = tunnelbench("study", *arguments)
        assert (outcome.status, outcome.errors) == (0, "")
        return outcome.output

    return run


def parsed(text: str) -> Any:  # noqa: ANN401
    return json.loads(text)


@pytest.mark.parametrize("name", bundled())
def test_every_bundled_study_is_right(printed: Printed, name: str) -> None:
    found = parsed(printed("check", name, "--json"))
    skipped = sum(reason["cells"] for reason in found["skipped"])
    assert found["cells"] == found["measured"] + skipped > 0


def test_check_says_what_is_skipped_and_why(printed: Printed) -> None:
    text = printed("check", "quick")
    assert "quick is right: 22 cells, 1 skipped" in text
    assert "1 cell: SSH port forwarding doesn't carry UDP over IPv4" in text


def test_check_tells_mistakes_with_their_place(tunnelbench: CommandLine, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text('[study]\nid = "w"\ntitle = "W"\nquestion = "?"\n[factors]\ntunnel = ["openvnp"]\n')
    outcome = tunnelbench("study", "check", str(wrong))
    assert outcome.status == 2
    assert f"{wrong}:6: factors.tunnel[0]: unknown VPN 'openvnp'" in outcome.errors


def test_cells_are_those_of_the_profile(printed: Printed) -> None:
    rows = parsed(printed("cells", "kth-four-vpns", "--profile", "smoke", "--json"))
    study = read_study(bundled()["kth-four-vpns"], catalogue(), "smoke")
    assert len(rows) == len(expand(study, catalogue()))
    assert {row["gateway_os"] for row in rows} == {"bookworm"}
    assert [row["skipped"] for row in rows if row["skipped"]] == [
        "SSH port forwarding doesn't carry UDP over IPv4"
    ]
    assert "the same in all: " in printed("cells", "kth-four-vpns", "--profile", "smoke")


def test_show_has_the_order_of_the_first_round(printed: Printed) -> None:
    shown = parsed(printed("show", "quick", "--runtime", "namespace", "--json"))
    assert shown["method"]["seed"] == 1
    assert len(shown["first_round"]) == 11
    again = parsed(printed("show", "quick", "--runtime", "namespace", "--json"))
    assert shown["first_round"] == again["first_round"]
    text = printed("show", "weerawarna-windows")
    assert "profile standard" in text
    assert "gateways bookworm, hosts trixie, kernel" in text


def test_show_says_what_a_profile_inherits(printed: Printed) -> None:
    wifi = parsed(printed("show", "kolahi-fedora15", "--profile", "wifi", "--runtime", "namespace", "--json"))
    assert wifi["profiles"] == {"as-published": None, "standard": None, "wifi": "standard", "smoke": None}
    text = printed("show", "kolahi-fedora15", "--runtime", "namespace")
    assert "profiles: as-published, standard, wifi (inherits standard), smoke" in text


def test_cost_is_a_span(printed: Printed) -> None:
    told = parsed(printed("cost", "quick", "--runtime", "namespace", "--json"))
    assert (told["tunnels"], told["trials"], told["budget_seconds"]) == (11, 21, 300)
    span = told["round_seconds"]
    assert 21 * 2.5 < span["low"] < span["usual"] < span["high"]
    assert 0 == told["system_calls_seconds"]["low"] < told["system_calls_seconds"]["usual"]
    once = told["before_seconds"]["usual"] + told["system_calls_seconds"]["usual"]
    whole = once + span["usual"] * told["rounds"]
    assert told["all_rounds_seconds"]["usual"] == pytest.approx(whole, abs=told["rounds"])
    assert told["rounds_in_budget"]["low"] <= told["rounds_in_budget"]["high"]
    assert "one round" in printed("cost", "quick", "--runtime", "namespace")
    assert "counting system calls" in printed("cost", "quick", "--runtime", "namespace")
    assert "counting system calls" not in printed("cost", "quick", "--runtime", "kernel")


def test_cost_is_told_from_an_earlier_campaign(printed: Printed, tmp_path: Path) -> None:
    directory = tmp_path / "earlier"
    write_campaign(directory)
    told = parsed(printed("cost", "quick", "--runtime", "namespace", "--like", str(directory), "--json"))
    assert told["origin"] == f"1 instances of {directory}"


def test_a_new_study_is_right_and_never_overwritten(
    tunnelbench: CommandLine, printed: Printed, tmp_path: Path
) -> None:
    file = tmp_path / "My study.toml"
    assert f"wrote {file}" in printed("new", str(file))
    study = read_study(file, catalogue())
    assert (study.about.id, list(study.profiles)) == ("my-study", ["smoke"])
    again = tunnelbench("study", "new", str(file))
    assert (again.status, "is there already" in again.errors) == (2, True)


def test_what_a_new_study_has_in_comments_is_right_too(printed: Printed, tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    printed("new", str(file))
    text = file.read_text()
    for line in text.splitlines():
        if line.startswith(
            (
                *("# [link]", "# rate", "# delay", "# loss", "# ip", "# mtu", "# streams", "# load"),
                *("# [profiles.slow-link]", "# inherits", "# link"),
            )
        ):
            text = text.replace(f"\n{line}\n", f"\n{line.removeprefix('# ')}\n")
    file.write_text(text)
    study = read_study(file, catalogue())
    assert (study.link.rate, study.factors.streams) == (100_000_000, (1, 8))
    slow = read_study(file, catalogue(), "slow-link")
    assert (slow.link.rate, slow.method.rounds, study.method.rounds) == (2_000_000, 1, 10)
