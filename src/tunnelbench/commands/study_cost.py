"""`tunnelbench study cost`: how long a study takes, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tunnelbench.campaign.calibration import settings
from tunnelbench.campaign.cryptography import encrypting
from tunnelbench.campaign.history import durations_of
from tunnelbench.commands.options import Json, Profile
from tunnelbench.commands.study_reading import (
    AssumedRuntime,
    Name,
    count,
    first_round,
    heading,
    print_json,
    read,
)
from tunnelbench.plan.estimate import USUAL_DURATIONS, Span, counting, estimate, rounds_within


def cost_command(
    study: Name,
    profile: Profile = None,
    like: Annotated[
        Path | None, typer.Option(help="The directory of an earlier campaign, to tell from what it took.")
    ] = None,
    runtime: AssumedRuntime = None,
    as_json: Json = False,
) -> None:
    """Say how long a study takes, and how sure that is."""
    chosen, cells = read(study, profile)
    durations = durations_of(like) if like else USUAL_DURATIONS
    plan = first_round(chosen, cells, runtime)
    one_round = estimate(plan.rounds[0], chosen.method, durations)
    before = durations.calibration * (len(settings(cells)) + len(encrypting(plan)))
    once = counting(plan.rounds[0], durations)
    whole = before + once + one_round * chosen.method.rounds
    budget = chosen.method.budget
    fitting = None if budget is None else rounds_within(budget, one_round, before + once, chosen.method)
    data = {
        "study": chosen.about.id,
        "profile": chosen.profile,
        "tunnels": len(plan.rounds[0]),
        "trials": sum(len(instance.points) for instance in plan.rounds[0]),
        "round_seconds": _as_data(one_round),
        "before_seconds": _as_data(before),
        "system_calls_seconds": _as_data(once),
        "rounds": chosen.method.rounds,
        "all_rounds_seconds": _as_data(whole),
        "budget_seconds": budget,
        "rounds_in_budget": None if fitting is None else dict(zip(_SPAN, fitting, strict=True)),
        "stop": chosen.method.stop,
        "origin": durations.origin,
    }
    if as_json:
        print_json(data)
        return
    console = Console(highlight=False)
    tunnels = count(len(plan.rounds[0]), "tunnel")
    console.print(Text(f"{heading(chosen)}: {tunnels}, {data['trials']} trials a round", "bold"))
    table = Table("", "about", "between", box=None, pad_edge=False, show_header=False)
    table.add_row("before the first round", *_times(before))
    if once.high:
        table.add_row("counting system calls, once", *_times(once))
    table.add_row("one round", *_times(one_round))
    table.add_row(f"all of {count(chosen.method.rounds, 'round')}", *_times(whole))
    console.print(table)
    if budget is not None and fitting is not None:
        least, usual, most = fitting
        console.print(
            f"the budget of {_time(budget)} has room for {count(usual, 'round')} ({least} to {most})"
        )
    if chosen.method.stop != "rounds":
        console.print(f'stop = "{chosen.method.stop}" may end it before')
    console.print(Text(f"told from {durations.origin}"), soft_wrap=True)


_SPAN = ("low", "usual", "high")


def _as_data(span: Span) -> dict[str, float]:
    return {name: round(getattr(span, name), 1) for name in _SPAN}


def _times(span: Span) -> tuple[str, str]:
    return _time(span.usual), f"({_time(span.low)} to {_time(span.high)})"


def _time(seconds: float) -> str:
    """In two units at most: `41 s`, `3 min 20 s`, `5 h 12 min`, `13 d 2 h`."""
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    left = round(seconds)
    size = next((position for position, (_, unit) in enumerate(units) if left >= unit), len(units) - 1)
    parts: list[str] = []
    for name, unit in units[size : size + 2]:
        count, left = divmod(left, unit)
        if count or not parts:
            parts.append(f"{count} {name}")
    return " ".join(parts)
