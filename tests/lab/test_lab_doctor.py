"""What the doctor finds on this machine and on ones that lack something, and what it says to do."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from tunnelbench.commands import doctor as doctor_module
from tunnelbench.commands.doctor import Places, doctor_command
from tunnelbench.errors import UserError
from tunnelbench.lab import doctor, rendezvous
from tunnelbench.lab.doctor import Finding, State, examine_machine
from tunnelbench.lab.features import Needs
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Runtime
from tunnelbench.lab.runtimes import Placement
from tunnelbench.tunnels import all_tunnels

app = typer.Typer()
app.command()(doctor_command)


@pytest.fixture(autouse=True)
def runtime_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


def finding(subject: str) -> Finding:
    (found,) = [one for one in examine_machine() if one.subject == subject]
    return found


@pytest.mark.lab
def test_a_machine_with_an_image_is_ready_and_every_suite_has_its_place() -> None:
    result = CliRunner().invoke(app, ["--json"])
    assert result.exit_code == 0, result.output
    told: dict[str, Any] = json.loads(result.stdout)
    assert told["ready"]
    suites = {(vpn, suite) for vpn, tunnel in all_tunnels().items() for suite in tunnel.suites}
    assert {(one["vpn"], one["suite"]) for one in told["tunnels"]} == suites
    places = {(one["vpn"], one["suite"]): one for one in told["tunnels"]}
    assert places["open", "none"]["runtime"] == "namespace"
    assert all(one["reason"] for one in told["tunnels"])


@pytest.mark.lab
def test_vpns_are_grouped_by_where_they_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def placed(image: Image, wanted: Mapping[tuple[str, str], Needs]) -> Places:
        kernel = Placement(Runtime.KERNEL, f"{image.name} has it")
        nowhere = Placement(None, "no such cipher")
        natively = Placement(Runtime.NAMESPACE, "all there")
        special = {("gre", "none"): kernel, ("openvpn", "des-cbc-md5"): nowhere}
        return {key: special.get(key, natively) for key in wanted}

    monkeypatch.setattr(doctor_module, "place", placed)
    shown = [" ".join(line.split()) for line in CliRunner().invoke(app).stdout.splitlines()]
    assert "✓ open natively" in shown
    assert "✓ gre as kernels: bookworm has it" in shown
    total = len(all_tunnels()["openvpn"].suites)
    assert f"✓ openvpn, {total - 1} of {total} suites natively" in shown
    assert "! openvpn/des-cbc-md5 not here: no such cipher" in shown
    assert shown[-1] == "Labs work here."


def test_without_an_image_it_fails_and_says_how_to_build_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TUNNELBENCH_CACHE", str(tmp_path))
    result = CliRunner().invoke(app, ["--json"])
    assert result.exit_code == 1
    told: dict[str, Any] = json.loads(result.stdout)
    assert not told["ready"]
    advice = {one["subject"]: one["advice"] for one in told["findings"] if one["state"] == "missing"}
    assert "tunnelbench image build bookworm" in advice["image"]
    assert "Labs don't work here yet." in CliRunner().invoke(app).stdout


def test_all_that_is_not_fine_comes_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUNNELBENCH_CACHE", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", one_processor)
    monkeypatch.setattr(doctor, "_TUN", tmp_path / "no-such-device")
    monkeypatch.setattr(doctor, "_LAB_BYTES", 1 << 60)
    monkeypatch.setattr(doctor, "_IMAGE_BYTES", 1 << 60)
    monkeypatch.setattr(doctor, "agent_program", agent_is_missing)
    rendezvous.claim("killed").close()
    (tmp_path / "images").mkdir()
    (tmp_path / "images/.bookworm.building").mkdir()
    found = examine_machine()
    poor = {one.subject: one for one in found if one.state is not State.FINE}
    assert set(poor) >= {"node agent", "TUN devices", "image", "processors", "memory", "disk", "leftovers"}
    assert all(one.advice for one in poor.values())
    assert "the socket of lab killed" in poor["leftovers"].text
    assert "half-built image .bookworm.building" in poor["leftovers"].text


def test_a_device_that_may_not_be_opened_is_told_from_one_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = tmp_path / "tun"
    device.touch(mode=0)
    monkeypatch.setattr(doctor, "_TUN", device)
    monkeypatch.setattr(os, "open", refuse_to_open)
    found = finding("TUN devices")
    assert found.state is State.LIMITED
    assert "you may not open" in found.text
    assert stat.filemode(device.stat().st_mode) in found.text
    assert "chmod 0666" in (found.advice or "")


def test_an_open_lab_is_told_to_disturb() -> None:
    with rendezvous.claim("mine"):
        found = finding("open labs")
    assert found.state is State.LIMITED
    assert "mine" in found.text


def one_processor(_: int) -> set[int]:
    return {0}


def agent_is_missing() -> Path:
    raise UserError("the node agent is missing", advice="Install it.")


def refuse_to_open(*_: object) -> int:
    raise PermissionError
