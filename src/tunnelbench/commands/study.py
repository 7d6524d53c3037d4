"""`tunnelbench study`: look at a study before it is run, and begin a new one."""

from __future__ import annotations

import asyncio
import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tunnelbench.campaign.calibration import settings
from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.campaign.cryptography import encrypting
from tunnelbench.campaign.history import durations_of
from tunnelbench.campaign.preparation import survey
from tunnelbench.commands.options import Profile, parse_runtime_choice
from tunnelbench.errors import UserError
from tunnelbench.plan.estimate import USUAL_DURATIONS, Span, estimate, rounds_within
from tunnelbench.plan.rounds import Plan, Runtime, make_plan
from tunnelbench.study.cells import Cell, expand
from tunnelbench.study.library import bundled, resolve
from tunnelbench.study.model import Study
from tunnelbench.study.reading import read_study
from tunnelbench.study.treatment import Treatment

study_app = typer.Typer(no_args_is_help=True, help="Look at a study before it is run, or begin a new one.")

Name = Annotated[
    str, typer.Argument(help="A study's name or TOML file.", autocompletion=lambda: list(bundled()))
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AssumedRuntime = Annotated[
    str | None,
    typer.Option(
        help="Where to assume that gateways run: namespace or kernel.",
        show_default="this machine is asked",
    ),
]
_MOST_REASONS = 20


@study_app.command()
def check(
    study: Name,
    profile: Profile = None,
    here: Annotated[
        bool, typer.Option("--here", help="Ask this machine, too, what it can't run, and why.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say whether a study is right, and what of it is skipped, and why."""
    read, cells = _read(study, profile)
    reasons = Counter(cell.skipped for cell in cells if cell.skipped is not None)
    if here:
        reasons.update(_absent_here(read, cells))
    data = {
        "study": read.about.id,
        "profile": read.profile,
        "profiles": _profiles(study),
        "cells": len(cells),
        "measured": len(cells) - reasons.total(),
        "skipped": [{"cells": count, "reason": reason} for reason, count in reasons.most_common()],
    }
    if as_json:
        _print_json(data)
        return
    console = Console(highlight=False)
    console.print(Text(f"{_heading(read)} is right: {_count(len(cells), 'cell')}, {reasons.total()} skipped"))
    for reason, count in reasons.most_common(_MOST_REASONS):
        console.print(Text(f"  {_count(count, 'cell')}: {reason}"), soft_wrap=True)
    if len(reasons) > _MOST_REASONS:
        console.print(f"  and {len(reasons) - _MOST_REASONS} more reasons: --json has all of them")


@study_app.command()
def show(study: Name, profile: Profile = None, runtime: AssumedRuntime = None, as_json: Json = False) -> None:
    """Show what a study varies, how it measures, and in which order its first round goes."""
    read, cells = _read(study, profile)
    plan = _plan(read, cells, runtime)
    order = [
        {"tunnel": instance.treatment.tunnel, "key": instance.key, "points": [p.key for p in instance.points]}
        for instance in plan.rounds[0]
    ]
    described = read.model_dump(mode="json", by_alias=True, exclude={"profiles"}, exclude_none=True)
    data = {**described, "profile": read.profile, "profiles": _profiles(study), "first_round": order}
    if as_json:
        _print_json(data)
        return
    console = Console(highlight=False)
    console.print(Text(f"{_heading(read)}: {read.about.title}", "bold"))
    console.print(Text(read.about.question))
    for table in ("factors", "socket", "link", "method"):
        console.print(_levels(table, described[table]))
    console.print(Text(f"\nfirst round, from the seed {read.method.seed}", "bold"))
    for number, instance in enumerate(plan.rounds[0], 1):
        place = f"{instance.treatment.systems}, {instance.runtime}, {_count(len(instance.points), 'trial')}"
        console.print(Text(f"{number:4} {instance.treatment.tunnel} ({place})"), soft_wrap=True)


@study_app.command("cells")
def cells_command(study: Name, profile: Profile = None, as_json: Json = False) -> None:
    """List every combination of levels, and why it is skipped where it is."""
    _, cells = _read(study, profile)
    rows = [
        {
            **cell.treatment.model_dump(mode="json"),
            **cell.point.model_dump(mode="json"),
            "skipped": cell.skipped,
        }
        for cell in cells
    ]
    if as_json:
        _print_json(rows)
        return
    columns = [name for name in rows[0] if name == "vpn" or len({str(row[name]) for row in rows}) > 1]
    table = Table(*columns, box=None, pad_edge=False)
    for row in rows:
        table.add_row(*(Text(_written(row[column])) for column in columns))
    Console(width=None if Console().is_terminal else 200).print(table)
    fixed = {name: _written(value) for name, value in rows[0].items() if name not in columns and value}
    Console(highlight=False).print(
        Text("the same in all: " + ", ".join(f"{name} {value}" for name, value in fixed.items())),
        soft_wrap=True,
    )


@study_app.command()
def cost(
    study: Name,
    profile: Profile = None,
    like: Annotated[
        Path | None, typer.Option(help="The directory of an earlier campaign, to tell from what it took.")
    ] = None,
    runtime: AssumedRuntime = None,
    as_json: Json = False,
) -> None:
    """Say how long a study takes, and how sure that is."""
    read, cells = _read(study, profile)
    durations = durations_of(like) if like else USUAL_DURATIONS
    plan = _plan(read, cells, runtime)
    one_round = estimate(plan.rounds[0], read.method, durations)
    before = durations.calibration * (len(settings(cells)) + len(encrypting(plan)))
    whole = before + one_round * read.method.rounds
    budget = read.method.budget
    fitting = None if budget is None else rounds_within(budget, one_round, before, read.method)
    data = {
        "study": read.about.id,
        "profile": read.profile,
        "tunnels": len(plan.rounds[0]),
        "trials": sum(len(instance.points) for instance in plan.rounds[0]),
        "round_seconds": _as_data(one_round),
        "before_seconds": _as_data(before),
        "rounds": read.method.rounds,
        "all_rounds_seconds": _as_data(whole),
        "budget_seconds": budget,
        "rounds_in_budget": None if fitting is None else dict(zip(_SPAN, fitting, strict=True)),
        "stop": read.method.stop,
        "origin": durations.origin,
    }
    if as_json:
        _print_json(data)
        return
    console = Console(highlight=False)
    tunnels = _count(len(plan.rounds[0]), "tunnel")
    console.print(Text(f"{_heading(read)}: {tunnels}, {data['trials']} trials a round", "bold"))
    table = Table("", "about", "between", box=None, pad_edge=False, show_header=False)
    table.add_row("before the first round", *_times(before))
    table.add_row("one round", *_times(one_round))
    table.add_row(f"all of {_count(read.method.rounds, 'round')}", *_times(whole))
    console.print(table)
    if budget is not None and fitting is not None:
        least, usual, most = fitting
        console.print(
            f"the budget of {_time(budget)} has room for {_count(usual, 'round')} ({least} to {most})"
        )
    if read.method.stop != "rounds":
        console.print(f'stop = "{read.method.stop}" may end it before')
    console.print(Text(f"told from {durations.origin}"), soft_wrap=True)


@study_app.command()
def new(
    file: Annotated[Path, typer.Argument(help="The file to write, such as mine.toml.")],
) -> None:
    """Write a new study to change: a small one with every key explained."""
    name = re.sub(r"[^a-z0-9._-]+", "-", file.stem.lower()).strip("-._") or "mine"
    text = resources.files("tunnelbench.study").joinpath("template.toml").read_text(encoding="utf-8")
    try:
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text.replace('"NAME"', f'"{name}"').replace("FILE", str(file)))
    except FileExistsError:
        raise UserError(f"{file} is there already", advice="Name another file.") from None
    except OSError as error:
        raise UserError(f"{file} can't be written: {error.strerror}") from error
    typer.echo(f"wrote {file}; run it: tunnelbench run {file}")


def _read(name: str, profile: str | None) -> tuple[Study, tuple[Cell, ...]]:
    study = read_study(resolve(name), catalogue(), profile)
    return study, expand(study, catalogue())


def _profiles(name: str) -> list[str]:
    """The profiles that the file has; a study that is in one of them has none itself."""
    return list(tomllib.loads(resolve(name).read_text(encoding="utf-8")).get("profiles", {}))


def _plan(study: Study, cells: Sequence[Cell], assumed: str | None) -> Plan:
    """The first round, with tunnels where they are assumed to run, where the study says, or can run here."""
    choice = parse_runtime_choice(assumed) or study.about.runtime
    runtimes: Mapping[Treatment, Runtime]
    if choice == "auto":
        with Console(stderr=True).status("asking this machine where tunnels can run"):
            runtimes = asyncio.run(survey(study, cells)).runtimes
    else:
        runtimes = {cell.treatment: choice for cell in cells}
    return make_plan(cells, 1, study.method.seed, runtimes)


def _absent_here(study: Study, cells: Sequence[Cell]) -> Mapping[str, int]:
    """How many cells can't be measured on this machine, by reason."""
    with Console(stderr=True).status("asking this machine what it can run"):
        placements = asyncio.run(survey(study, cells)).placements
    return Counter(
        placements[cell.treatment].reason
        for cell in cells
        if cell.skipped is None and placements[cell.treatment].runtime is None
    )


_SPAN = ("low", "usual", "high")


def _as_data(span: Span) -> dict[str, float]:
    return {name: round(getattr(span, name), 1) for name in _SPAN}


def _times(span: Span) -> tuple[str, str]:
    return _time(span.usual), f"({_time(span.low)} to {_time(span.high)})"


def _time(seconds: float) -> str:
    """In two units at most: `41 s`, `3 min 20 s`, `5 h 12 min`, `13 days 2 h`."""
    units = (("days", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    left = round(seconds)
    size = next((position for position, (_, unit) in enumerate(units) if left >= unit), len(units) - 1)
    parts: list[str] = []
    for name, unit in units[size : size + 2]:
        count, left = divmod(left, unit)
        if count or not parts:
            parts.append(f"{count} {name}")
    return " ".join(parts)


def _heading(study: Study) -> str:
    return study.about.id if study.profile is None else f"{study.about.id}, profile {study.profile}"


def _levels(table: str, levels: Mapping[str, Any]) -> Table:
    shown = Table(box=None, pad_edge=False, show_header=False)
    shown.add_column(no_wrap=True)
    shown.add_column(overflow="fold")
    for key, value in levels.items():
        parts = cast(dict[str, Any], value) if isinstance(value, dict) else {"": value}
        for part, own in parts.items():
            shown.add_row(f"{table}.{key}" + (f".{part}" if part else ""), Text(_written(own)))
    return shown


def _written(value: object) -> str:
    match value:
        case None | "":
            return "-"
        case bool():
            return "yes" if value else "no"
        case list() | tuple():
            return ", ".join(map(_written, cast(Sequence[object], value)))
        case _:
            return str(value)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _print_json(data: object) -> None:
    typer.echo(json.dumps(data, indent=2))
