"""What `tunnelbench list` prints, for readers and for programs; and the help of every command."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from small_campaign import write_campaign
from typer.testing import CliRunner

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.cli import app
from tunnelbench.tunnels import all_tunnels

CLI = CliRunner(env={"COLUMNS": "80"})


def printed(*arguments: str) -> str:
    result = CLI.invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_vpn_is_one_line_of_80_columns() -> None:
    table, *_ = printed("list", "vpns").split("\n\n")
    heading, *lines = table.splitlines()
    assert heading.split() == ["name", "title", "suites", "carries", "packets"]
    assert [line.split()[0] for line in lines] == list(all_tunnels())
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("vpn", "suites", "carries"),
    [
        ("open", "1", "IPv4, IPv6"),
        ("ipip", "1", "IPv4"),
        ("openvpn", str(len(all_tunnels()["openvpn"].suites)), "IPv4, IPv6"),
        ("ssh-port-forwarding", str(len(all_tunnels()["ssh-port-forwarding"].suites)), "TCP; IPv4, IPv6"),
    ],
)
def test_suites_are_counted_and_traffic_is_told_in_short(vpn: str, suites: str, carries: str) -> None:
    (line,) = (line for line in printed("list", "vpns").splitlines() if line.startswith(f"{vpn} "))
    assert f" {suites} " in line
    assert f" {carries} " in line


def test_json_names_every_suite() -> None:
    vpns = {vpn["name"]: vpn for vpn in json.loads(printed("list", "vpns", "--json"))}
    assert {name: vpn["suites"] for name, vpn in vpns.items() if "unavailable" not in vpn} == {
        name: list(tunnel.suites) for name, tunnel in all_tunnels().items()
    }
    assert vpns["ipip"]["carries"] == ["icmp over ipv4", "tcp over ipv4", "udp over ipv4"]


def test_what_cannot_be_had_is_listed_with_the_reason() -> None:
    assert "l2f (L2F, Layer Two Forwarding) can't be had: no implementation" in printed("list", "vpns")


def test_suites_are_written_as_studies_name_them() -> None:
    names = [suite["name"] for suite in json.loads(printed("list", "suites", "--json"))]
    assert names == [f"{name}/{suite}" for name, tunnel in all_tunnels().items() for suite in tunnel.suites]
    assert "openvpn/aes-256-gcm" in printed("list", "suites", "openvpn")
    assert "wireguard" not in printed("list", "suites", "openvpn")


@pytest.mark.parametrize(("what", "name"), [("studies", "quick"), ("loads", "engine")])
def test_what_else_there_is(what: str, name: str) -> None:
    assert name in printed("list", what)
    assert name in {row["name"] for row in json.loads(printed("list", what, "--json"))}


def test_a_machine_without_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNNELBENCH_CACHE", str(tmp_path))
    assert json.loads(printed("image", "list", "--json")) == []
    assert "tunnelbench image build" in printed("image", "list")


def test_a_report_as_json(tmp_path: Path) -> None:
    write_campaign(tmp_path)
    report = json.loads(printed("report", str(tmp_path), "--json"))
    (result,) = report["results"]
    assert result["tunnel"] == "open"
    assert result["metrics"]["throughput"]["median"] == 123.0
    assert (tmp_path / "report.html").is_file()


def commands(group: typer.Typer, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The path of every command and every group of commands."""
    yield path
    for command in group.registered_commands:
        assert command.callback is not None
        yield (*path, command.name or command.callback.__name__)
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        assert inner.name is not None
        yield from commands(inner.typer_instance, (*path, inner.name))


@pytest.mark.parametrize("path", list(commands(app)), ids=" ".join)
@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(path: tuple[str, ...], option: str) -> None:
    text = printed(*path, option)
    assert "Usage" in text
    assert " ".join(path) in text


def test_every_profile_is_listed() -> None:
    rows = json.loads(printed("list", "profiles", "--json"))
    assert [row["name"] for row in rows] == list(catalogue().profiles)
    assert {"name": "dns", "over": ["UDP"], "title": catalogue().profile("dns").title} in rows
