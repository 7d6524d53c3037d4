"""`tunnelbench doctor`: what this machine can run natively, what takes a kernel node, and what neither."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tunnelbench.errors import UserError
from tunnelbench.lab import image as images
from tunnelbench.lab.doctor import Finding, State, examine_machine
from tunnelbench.lab.lab import Runtime
from tunnelbench.lab.runtimes import Placement, place
from tunnelbench.lab.tuning import examine_tuning
from tunnelbench.tunnels import all_tunnels

_MARKS = {
    State.FINE: Text("✓", "green"),
    State.LIMITED: Text("!", "bold yellow"),
    State.MISSING: Text("✗", "bold red"),
}
_MOST_NAMED = 4

Places = Mapping[tuple[str, str], Placement]
"""By VPN and suite."""


def doctor_command(
    image: Annotated[
        str, typer.Option(help="The image whose kernel and programs count.")
    ] = images.DEFAULT_IMAGE,
    tune: Annotated[
        bool, typer.Option("--tune", help="Say what makes this machine restless, and what would change it.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what this machine can run natively, what takes a kernel node, and what it can't run, and why.

    Succeeds where labs work here, so that the quick study can be run. With --tune, say instead what disturbs
    measurements: each setting, its value, and the command to change it. Nothing is changed.
    """
    if tune:
        _tune(as_json)
        return
    findings = examine_machine()
    places: Places = {}
    if _ready(findings):
        try:
            with Console(stderr=True).status("trying what kernels can do"):
                places = _places(images.find(image))
        except UserError as error:
            findings.append(Finding("nodes", State.MISSING, error.message, error.advice))
    ready = _ready(findings)
    if as_json:
        typer.echo(json.dumps(_as_data(ready, findings, places), indent=2))
    else:
        _show(findings, places)
        Console().print("Labs work here." if ready else "Labs don't work here yet.", style="bold")
    raise typer.Exit(0 if ready else 1)


def _tune(as_json: bool) -> None:
    findings = examine_tuning()
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=2))
        return
    _show(findings, {})
    restless = sum(finding.state is not State.FINE for finding in findings)
    text = f"{restless} to change; nothing has been changed." if restless else "Nothing to change."
    Console().print(text, style="bold")


def _ready(findings: Sequence[Finding]) -> bool:
    return all(finding.state is not State.MISSING for finding in findings)


def _places(image: images.Image) -> Places:
    needs = {
        (name, suite): tunnel.needs(tunnel.variant(suite))
        for name, tunnel in all_tunnels().items()
        for suite in tunnel.suites
    }
    return asyncio.run(place(image, needs))


def _as_data(ready: bool, findings: Sequence[Finding], places: Places) -> dict[str, object]:
    return {
        "ready": ready,
        "findings": [asdict(finding) for finding in findings],
        "tunnels": [
            {"vpn": vpn, "suite": suite, "runtime": placement.runtime, "reason": placement.reason}
            for (vpn, suite), placement in places.items()
        ],
    }


def _show(findings: Sequence[Finding], places: Places) -> None:
    console = Console()
    table = Table("", "this machine", "", box=None, pad_edge=False)
    for finding in findings:
        advice = f"\n→ {finding.advice}" if finding.advice and finding.state is not State.FINE else ""
        table.add_row(_MARKS[finding.state], finding.subject, Text(f"{finding.text}{advice}"))
    console.print(table)
    if not places:
        return
    console.print()
    table = Table("", "VPN", "gateways", box=None, pad_edge=False)
    for group in _grouped(places):
        mark = _MARKS[State.LIMITED if group.runtime is None else State.FINE]
        table.add_row(mark, group.title(), Text(group.text()))
    console.print(table)


@dataclass(frozen=True)
class _Group:
    """Suites of one VPN that run in the same place, and why there, each for itself."""

    vpn: str
    runtime: Runtime | None
    suites: tuple[str, ...]
    reasons: tuple[str, ...]

    def title(self) -> str:
        """The VPN, with its suites, or how many, where they are not all."""
        total = len(all_tunnels()[self.vpn].suites)
        if len(self.suites) == total:
            return self.vpn
        if len(self.suites) > _MOST_NAMED:
            return f"{self.vpn}, {len(self.suites)} of {total} suites"
        return "\n".join(f"{self.vpn}/{suite}" for suite in self.suites)

    def text(self) -> str:
        """Where, and except for the natural place why; the first reason stands for many of a kind."""
        reason = f"{self.reasons[0]}{', and so on' if len(set(self.reasons)) > 1 else ''}"
        match self.runtime:
            case Runtime.NAMESPACE:
                return "natively"
            case Runtime.KERNEL:
                return f"as kernels: {reason}"
            case None:
                return f"not here: {reason}"


def _grouped(places: Places) -> list[_Group]:
    groups: dict[tuple[str, Runtime | None], dict[str, str]] = {}
    for (vpn, suite), placement in places.items():
        groups.setdefault((vpn, placement.runtime), {})[suite] = placement.reason
    return [
        _Group(vpn, runtime, tuple(reasons), tuple(reasons.values()))
        for (vpn, runtime), reasons in groups.items()
    ]
