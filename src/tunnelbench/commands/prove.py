"""`tunnelbench prove`: does a VPN work here, with this suite, on this image?"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.campaign.proving import (
    Attempt,
    Finding,
    attempt_of,
    try_out,
    usual_attempts,
    usual_suite,
    whole_matrix,
)
from tunnelbench.commands.matrix import Book, as_row
from tunnelbench.commands.options import systems_of
from tunnelbench.errors import UserError
from tunnelbench.lab import image as images
from tunnelbench.study.catalogue import Choice
from tunnelbench.tunnels import all_tunnels

_MARKS = {"works": "[green]works[/]", "blocked": "[yellow]blocked[/]", "fails": "[red]fails[/]"}


def prove_command(
    tunnels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VPN[/SUITE]]...",
            help="What to try, as studies name it ('openvpn/*', 'openvpn/aes-256-gcm carrier=tcp'); every "
            "VPN with one suite where nothing is named.",
            autocompletion=lambda: list(all_tunnels()),
        ),
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(
            help="An image to try it on, or one for each side (bookworm+trixie); can be given several times."
        ),
    ] = None,
    matrix: Annotated[
        bool,
        typer.Option("--matrix", help="Try every suite, option, outer IP version and topology of each VPN."),
    ] = False,
    at_once: Annotated[
        int, typer.Option(min=1, max=16, help="How many to try at the same time, each in a lab of its own.")
    ] = 1,
    clients: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Try each as remote access, with so many clients of one gateway."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Write what was found to this file as JSON; what it has of other attempts stays."),
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Leave out what works or is blocked according to the file of --out."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Bring VPNs up, prove them on the wire, send TCP and UDP, kill their programs, and look what is left.

    Each comes up twice in the same lab, and once more to have a program killed; of a matrix only the usual
    suite of each VPN does, the others come up once, on links of 50 Mbit/s. Succeeds where nothing fails.
    """
    chosen = [systems_of(text) for text in image or [images.DEFAULT_IMAGE]]
    if clients and (matrix or not tunnels):
        raise UserError("a number of clients is for VPNs that are named, and not for a matrix")
    attempts = [attempt for name in chosen for attempt in _attempts(tunnels or [], name, matrix, clients)]
    if resume and out is None:
        raise UserError("--resume needs the file that was begun", advice="Name it with --out.")
    book = Book.open(out) if out is not None else None
    if resume and book is not None:
        attempts = [attempt for attempt in attempts if not book.settles(attempt)]
    findings = asyncio.run(_try_all(attempts, at_once, book))
    if as_json:
        typer.echo(json.dumps([as_row(finding) for finding in findings], indent=2))
    else:
        Console().print(_table(findings))
    raise typer.Exit(1 if any(finding.outcome == "fails" for finding in findings) else 0)


def _attempts(patterns: list[str], image: str, matrix: bool, clients: int | None) -> Iterable[Attempt]:
    if not patterns:
        return whole_matrix(all_tunnels(), image) if matrix else usual_attempts(all_tunnels(), image)
    choices = [choice for pattern in patterns for choice in _choices(pattern)]
    if matrix:
        return whole_matrix(dict.fromkeys(choice.vpn for choice in choices), image)
    topology = "remote-access" if clients else None
    return [
        attempt_of(
            all_tunnels()[choice.vpn],
            image,
            choice.suite,
            choice.options,
            topology=topology,
            clients=clients,
        )
        for choice in choices
    ]


def _choices(pattern: str) -> Iterable[Choice]:
    """What a pattern means; a VPN without a suite means its usual one."""
    tunnel, *options = pattern.split() or [""]
    if tunnel in all_tunnels():
        tunnel = f"{tunnel}/{usual_suite(all_tunnels()[tunnel])}"
    return catalogue().tunnels(" ".join([tunnel, *options]))


async def _try_all(attempts: list[Attempt], at_once: int, book: Book | None) -> list[Finding]:
    columns = (TextColumn("{task.description}"), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    findings: list[Finding] = []
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("trying out", total=len(attempts))
        async for finding in try_out(attempts, at_once):
            findings.append(finding)
            if book is not None:
                book.add(as_row(finding))
            if not console.is_terminal or finding.outcome == "fails":
                console.print(Text.from_markup(_MARKS[finding.outcome]).append(f" {_where(finding)}"))
            progress.advance(task)
    return findings


def _where(finding: Finding) -> str:
    attempt = finding.attempt
    return f"{attempt.treatment.tunnel}, {attempt.topology}, {attempt.treatment.gateway_os}"


def _table(findings: Iterable[Finding]) -> Table:
    table = Table("tunnel", "topology", "image", "", "gateways", "why", box=None, pad_edge=False)
    for finding in findings:
        attempt = finding.attempt
        table.add_row(
            Text(attempt.treatment.tunnel),
            attempt.topology,
            attempt.treatment.gateway_os,
            _MARKS[finding.outcome],
            finding.runtime or "",
            Text(finding.reason or ""),
        )
    return table
