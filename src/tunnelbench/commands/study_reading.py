"""What the commands on studies share: their options, the study, and its first round as it would go here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer
from rich.console import Console

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.campaign.preparation import survey
from tunnelbench.commands.options import parse_runtime_choice
from tunnelbench.plan.rounds import Plan, Runtime, make_plan
from tunnelbench.study.cells import Cell, expand
from tunnelbench.study.library import bundled, resolve
from tunnelbench.study.model import Study
from tunnelbench.study.reading import read_study
from tunnelbench.study.treatment import Treatment

Name = Annotated[
    str, typer.Argument(help="A study's name or TOML file.", autocompletion=lambda: list(bundled()))
]
AssumedRuntime = Annotated[
    str | None,
    typer.Option(
        help="Where to assume that gateways run: namespace or kernel.",
        show_default="this machine is asked",
    ),
]


def read(name: str, profile: str | None) -> tuple[Study, tuple[Cell, ...]]:
    """The study of a name or path in a profile, and its cells. Raises UserError for mistakes in it."""
    study = read_study(resolve(name), catalogue(), profile)
    return study, expand(study, catalogue())


def first_round(study: Study, cells: Sequence[Cell], assumed: str | None) -> Plan:
    """The first round, with tunnels where they are assumed to run, where the study says, or can run here."""
    choice = parse_runtime_choice(assumed) or study.about.runtime
    runtimes: Mapping[Treatment, Runtime]
    if choice == "auto":
        with Console(stderr=True).status("asking this machine where tunnels can run"):
            runtimes = asyncio.run(survey(study, cells)).runtimes
    else:
        runtimes = {cell.treatment: choice for cell in cells}
    return make_plan(cells, 1, study.method.seed, runtimes)


def heading(study: Study) -> str:
    """The study, and the profile that it is in."""
    return study.about.id if study.profile is None else f"{study.about.id}, profile {study.profile}"


def count(number: int, what: str) -> str:
    """`1 cell`, `2 cells`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def print_json(data: object) -> None:
    """Prints data for programs."""
    typer.echo(json.dumps(data, indent=2))
