"""Bad input: the command says what is wrong, where, and what to do; no traceback, exit status 2."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import CommandLine, Outcome
from typer.testing import CliRunner

from tunnelbench.cli import app

HEAD = """\
[study]
id = "bad"
title = "Bad"
question = "What does it say?"

[factors]
"""


def complaint(outcome: Outcome) -> str:
    """What the command said on standard error, where it ended as it should."""
    assert outcome.status == 2, outcome
    assert outcome.output == ""
    assert "Traceback" not in outcome.errors
    return outcome.errors


@pytest.mark.parametrize(
    ("lines", "line", "key", "message"),
    [
        pytest.param(
            'tunnel = ["open"]\ntransprot = ["tcp"]',
            8,
            "factors.transprot",
            "unknown key 'transprot'. Did you mean 'transport'?",
            id="key",
        ),
        pytest.param(
            'tunnel = ["open"]\n\ntransport = ["tcp", "upd"]',
            9,
            "factors.transport[1]",
            "unknown level 'upd'. Did you mean 'udp'?",
            id="level",
        ),
        pytest.param(
            'tunnel = ["openvnp/aes-256-gcm"]',
            7,
            "factors.tunnel[0]",
            "unknown VPN 'openvnp'. Did you mean 'openvpn'?",
            id="vpn",
        ),
        pytest.param(
            'tunnel = [\n    "open",\n    "openvpn/aes-256-gmc",\n]',
            9,
            "factors.tunnel[1]",
            "openvpn has no suite 'aes-256-gmc'. Did you mean 'aes-256-gcm'?",
            id="suite",
        ),
        pytest.param(
            'tunnel = ["openvpn"]', 7, "factors.tunnel[0]", "'openvpn' has several suites", id="no suite"
        ),
        pytest.param(
            'tunnel = ["open"]\nload = ["iperff3"]',
            8,
            "factors.load[0]",
            "unknown load 'iperff3'. Did you mean 'iperf3'?",
            id="load",
        ),
        pytest.param(
            'tunnel = ["open"]\nrate = ["10 Mbps"]',
            8,
            "factors.rate[0]",
            "unknown unit 'Mbps'; write a sending rate in bit/s, kbit/s, Mbit/s",
            id="unit",
        ),
        pytest.param(
            'tunnel = ["open"]\n[method]\ntrial = "-5 s"', 9, "method.trial", "'-5 s' is negative", id="time"
        ),
        pytest.param(
            'tunnel = ["open"]\n[method]\nrounds = -1',
            9,
            "method.rounds",
            "must be greater than or equal to 1, not -1",
            id="number",
        ),
    ],
)
def test_a_study_with_a_mistake(
    lines: str, line: int, key: str, message: str, tmp_path: Path, tunnelbench: CommandLine
) -> None:
    study = tmp_path / "bad.toml"
    study.write_text(f"{HEAD}{lines}\n")
    said = complaint(tunnelbench("run", str(study), "--out", str(tmp_path / "out")))
    assert f"{study}:{line}: {key}: " in said
    assert message in said
    assert not (tmp_path / "out").exists()


def test_all_mistakes_of_a_study_are_told_at_once(tmp_path: Path, tunnelbench: CommandLine) -> None:
    study = tmp_path / "bad.toml"
    study.write_text(f'{HEAD}tunnel = ["open"]\nmtu = [0]\nip = ["ipv5"]\n')
    said = complaint(tunnelbench("run", str(study)))
    assert f"{study}:8: factors.mtu[0]" in said
    assert f"{study}:9: factors.ip[0]" in said


def test_text_that_is_not_toml(tmp_path: Path, tunnelbench: CommandLine) -> None:
    study = tmp_path / "bad.toml"
    study.write_text('[study]\nid = "unclosed\n')
    said = complaint(tunnelbench("run", str(study)))
    assert f"{study}:2: not valid TOML" in said


def test_bytes_that_are_not_text(tmp_path: Path, tunnelbench: CommandLine) -> None:
    study = tmp_path / "bad.toml"
    study.write_bytes(b"\xff\xfe")
    assert f"{study}: not a text file in UTF-8" in complaint(tunnelbench("run", str(study)))


@pytest.mark.parametrize(
    ("arguments", "message", "advice"),
    [
        (("run", "quik"), "there is no study 'quik'", "Did you mean 'quick'?"),
        (("run", "quick", "--budget", "5"), "--budget: '5' has no unit", "500 ms"),
        (("run", "quick", "--budget", "5 parsecs"), "unknown unit 'parsecs'", "500 ms"),
        (
            ("run", "quick", "--runtime", "docker"),
            "unknown runtime 'docker'",
            "Valid runtimes: auto, namespace, kernel",
        ),
        (("list", "suites", "openvnp"), "unknown VPN 'openvnp'", "Did you mean 'openvpn'?"),
        (("image", "build", "sid"), "sid is not a Debian release", "--release"),
        (("prove", "gre", "--image", "a+b+c"), "'a+b+c' names 3 images", "tunnelbench image list"),
        (("lab", "up", "gre", "--gateway-os", "../etc"), "'../etc' must be lower-case", "image list"),
    ],
)
def test_a_wrong_argument(
    arguments: tuple[str, ...], message: str, advice: str, tunnelbench: CommandLine
) -> None:
    said = complaint(tunnelbench(*arguments))
    assert message in said
    assert advice in said


@pytest.mark.parametrize("command", ["resume", "report"])
@pytest.mark.parametrize("exists", [True, False])
def test_a_directory_without_a_campaign(
    command: str, exists: bool, tmp_path: Path, tunnelbench: CommandLine
) -> None:
    directory = tmp_path if exists else tmp_path / "nowhere"
    said = complaint(tunnelbench(command, str(directory)))
    assert f"There is no campaign in {directory}" in said
    assert "tunnelbench run --out" in said
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_campaign(tmp_path: Path, tunnelbench: CommandLine) -> None:
    (tmp_path / "campaign.sqlite").write_text("not a database, but long enough to be taken for one\n" * 100)
    assert "is not a campaign file" in complaint(tunnelbench("report", str(tmp_path)))


@pytest.mark.parametrize(
    "arguments", [("frobnicate",), ("run",), ("run", "quick", "--rounds", "0"), ("run", "quick", "--wrong")]
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 2
    assert "Usage" in result.stderr
    assert isinstance(result.exception, SystemExit)
