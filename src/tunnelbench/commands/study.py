"""`tunnelbench study`: look at a study before it is run, and begin a new one."""

from __future__ import annotations

import asyncio
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

from tunnelbench.campaign.preparation import survey
from tunnelbench.commands.options import Json, Profile
from tunnelbench.commands.study_cost import cost_command
from tunnelbench.commands.study_reading import (
    AssumedRuntime,
    Name,
    count,
    first_round,
    heading,
    print_json,
    read,
)
from tunnelbench.errors import UserError
from tunnelbench.study.cells import Cell
from tunnelbench.study.library import resolve
from tunnelbench.study.model import Study

study_app = typer.Typer(no_args_is_help=True, help="Look at a study before it is run, or begin a new one.")
study_app.command("cost")(cost_command)

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
    chosen, cells = read(study, profile)
    reasons = Counter(cell.skipped for cell in cells if cell.skipped is not None)
    if here:
        reasons.update(_absent_here(chosen, cells))
    data = {
        "study": chosen.about.id,
        "profile": chosen.profile,
        "profiles": list(_profiles(study)),
        "cells": len(cells),
        "measured": len(cells) - reasons.total(),
        "skipped": [{"cells": number, "reason": reason} for reason, number in reasons.most_common()],
    }
    if as_json:
        print_json(data)
        return
    console = Console(highlight=False)
    console.print(Text(f"{heading(chosen)} is right: {count(len(cells), 'cell')}, {reasons.total()} skipped"))
    for reason, number in reasons.most_common(_MOST_REASONS):
        console.print(Text(f"  {count(number, 'cell')}: {reason}"), soft_wrap=True)
    if len(reasons) > _MOST_REASONS:
        console.print(f"  and {len(reasons) - _MOST_REASONS} more reasons: --json has all of them")


@study_app.command()
def show(study: Name, profile: Profile = None, runtime: AssumedRuntime = None, as_json: Json = False) -> None:
    """Show what a study varies, how it measures, and in which order its first round goes."""
    chosen, cells = read(study, profile)
    plan = first_round(chosen, cells, runtime)
    order = [
        {"tunnel": instance.treatment.tunnel, "key": instance.key, "points": [p.key for p in instance.points]}
        for instance in plan.rounds[0]
    ]
    described = chosen.model_dump(mode="json", by_alias=True, exclude={"profiles"}, exclude_none=True)
    profiles = _profiles(study)
    data = {**described, "profile": chosen.profile, "profiles": profiles, "first_round": order}
    if as_json:
        print_json(data)
        return
    console = Console(highlight=False)
    console.print(Text(f"{heading(chosen)}: {chosen.about.title}", "bold"))
    console.print(Text(chosen.about.question))
    if profiles:
        told = (f"{name} (inherits {parent})" if parent else name for name, parent in profiles.items())
        console.print(Text(f"profiles: {', '.join(told)}"))
    for table in ("factors", "socket", "link", "method"):
        console.print(_levels(table, described[table]))
    console.print(Text(f"\nfirst round, from the seed {chosen.method.seed}", "bold"))
    for number, instance in enumerate(plan.rounds[0], 1):
        place = f"{instance.treatment.systems}, {instance.runtime}, {count(len(instance.points), 'trial')}"
        console.print(Text(f"{number:4} {instance.treatment.tunnel} ({place})"), soft_wrap=True)


@study_app.command("cells")
def cells_command(study: Name, profile: Profile = None, as_json: Json = False) -> None:
    """List every combination of levels, and why it is skipped where it is."""
    _, cells = read(study, profile)
    rows = [
        {
            **cell.treatment.model_dump(mode="json"),
            **cell.point.model_dump(mode="json"),
            "skipped": cell.skipped,
        }
        for cell in cells
    ]
    if as_json:
        print_json(rows)
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


def _profiles(name: str) -> dict[str, str | None]:
    """The profiles that the file has, each with the one that it inherits from.

    A study that is in one of them has none itself.
    """
    profiles = tomllib.loads(resolve(name).read_text(encoding="utf-8")).get("profiles", {})
    return {profile: content.get("inherits") for profile, content in profiles.items()}


def _absent_here(study: Study, cells: Sequence[Cell]) -> Mapping[str, int]:
    """How many cells can't be measured on this machine, by reason."""
    with Console(stderr=True).status("asking this machine what it can run"):
        placements = asyncio.run(survey(study, cells)).placements
    return Counter(
        placements[cell.treatment].reason
        for cell in cells
        if cell.skipped is None and placements[cell.treatment].runtime is None
    )


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
        case dict():
            pairs = cast(dict[str, object], value).items()
            return f"({', '.join(f'{key}: {_written(own)}' for key, own in pairs)})"
        case _:
            return str(value)
