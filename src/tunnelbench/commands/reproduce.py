"""`tunnelbench reproduce`: repeat a published study, and say which of its findings hold here."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, Group
from rich.text import Text

from tunnelbench.campaign.campaign import Wish, start
from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.commands.options import (
    Budget,
    Out,
    Profile,
    Rounds,
    RuntimeName,
    parse_runtime_choice,
    seconds_of,
)
from tunnelbench.commands.run import build_report, measure, usual_directory
from tunnelbench.errors import UserError
from tunnelbench.study.library import resolve
from tunnelbench.study.published import published_studies
from tunnelbench.study.reading import read_study, read_text

if TYPE_CHECKING:
    from tunnelbench.analysis.findings.verdict import Verdict

_STYLES = {"holds": "green", "does not hold": "bold red", "undecided": "yellow", "not testable here": "dim"}


def reproduce_command(
    study: Annotated[
        str,
        typer.Argument(
            help="A study that repeats a published one: its name or TOML file.",
            autocompletion=lambda: list(published_studies()),
        ),
    ],
    profile: Profile = None,
    out: Out = None,
    rounds: Rounds = None,
    budget: Budget = None,
    runtime: RuntimeName = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdicts as JSON.")] = False,
) -> None:
    """Run a published study, write its report, and hold each finding of the paper against the results."""
    path = resolve(study)
    if read_study(path, catalogue(), profile).published is None:
        raise UserError(
            f"{study} does not say which published study it repeats",
            advice=f"Those that do: {', '.join(published_studies())}. Others need a table [published].",
        )
    wish = Wish(rounds, seconds_of(budget), parse_runtime_choice(runtime), profile=profile)
    directory = out or usual_directory(path)
    console = Console(stderr=True)
    measure(lambda view: start(read_text(path), str(path), directory, wish, view), directory, console)
    page, content = build_report(directory, console)
    verdicts = content.reproduction.verdicts if content.reproduction is not None else ()
    if as_json:
        typer.echo(json.dumps([asdict(verdict) for verdict in verdicts], indent=2))
    else:
        Console().print(in_words(verdicts), soft_wrap=True)
    console.print(f"Report: {page}", markup=False, highlight=False, soft_wrap=True)


def in_words(verdicts: Sequence[Verdict]) -> Group:
    """Each verdict with what the paper says and what was found, then how many came out how."""
    parts: list[Text] = []
    for verdict in verdicts:
        contradicted = " (the paper itself also denies it)" if verdict.contradicted else ""
        says = f": {verdict.says}{contradicted} [{verdict.where}]"
        parts += [
            Text.assemble((verdict.outcome, _STYLES[verdict.outcome]), says),
            Text(f"    {verdict.summary}"),
        ]
        if verdict.rounds_needed is not None:
            parts.append(Text(f"    about {verdict.rounds_needed} rounds would decide it"))
    counts = Counter(verdict.outcome for verdict in verdicts)
    found = ", ".join(f"{outcome} {counts[outcome]}" for outcome in _STYLES if counts[outcome])
    return Group(*parts, Text(f"{len(verdicts)} findings: {found}", "bold"))
