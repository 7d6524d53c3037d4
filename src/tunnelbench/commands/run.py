"""`tunnelbench run`, `resume` and `report`: from a study to its answer."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from tunnelbench.campaign.campaign import Wish, resume, start
from tunnelbench.commands.live import LiveView
from tunnelbench.commands.options import (
    Budget,
    Out,
    Profile,
    Rounds,
    RuntimeName,
    parse_runtime_choice,
    seconds_of,
)
from tunnelbench.report.build import build_report_apart
from tunnelbench.store.database import FILE_NAME
from tunnelbench.store.read import CampaignData
from tunnelbench.study.library import bundled, resolve
from tunnelbench.study.reading import read_text

if TYPE_CHECKING:
    from tunnelbench.report.content import Content

_INTERRUPTED_STATUS = 130

Campaign = Callable[[LiveView], Coroutine[object, object, str]]
"""Runs a campaign before a view, and returns why it ended."""

Json = Annotated[bool, typer.Option("--json", help="Print the results as JSON, and nothing else.")]


def _study_names() -> list[str]:
    return list(bundled())


def run_command(
    study: Annotated[str, typer.Argument(help="A study's name or TOML file.", autocompletion=_study_names)],
    out: Out = None,
    profile: Profile = None,
    rounds: Rounds = None,
    budget: Budget = None,
    runtime: RuntimeName = None,
    as_json: Json = False,
) -> None:
    """Run a study: measure, prove, store, and write the report."""
    path = resolve(study)
    wish = Wish(rounds, seconds_of(budget), parse_runtime_choice(runtime), profile=profile)
    directory = out or usual_directory(path)
    _run(lambda view: start(read_text(path), str(path), directory, wish, view), directory, as_json)


def resume_command(
    directory: Annotated[Path, typer.Argument(help="The directory of a campaign.")],
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Rounds in all, instead of the plan's.", show_default="as planned"),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Time for the whole campaign, such as 40m.", show_default="as planned"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Go on with a campaign that was interrupted or killed, or that should have more rounds.

    All that it has measured is kept.
    """
    seconds = seconds_of(budget)
    _run(lambda view: resume(directory, view, rounds, seconds), directory, as_json)


def report_command(
    directory: Annotated[Path, typer.Argument(help="The directory of a campaign.")],
    as_json: Json = False,
) -> None:
    """Write a campaign's report anew: report.html and the study beside it."""
    _report(directory, Console(stderr=True), as_json)


def usual_directory(study: Path) -> Path:
    """Where the results of a study go if nobody says: a name of its own in this directory."""
    return Path(f"{study.stem}-{datetime.now(UTC).astimezone():%Y%m%d-%H%M%S}")


def measure(campaign: Campaign, directory: Path, console: Console) -> None:
    """Runs a campaign before a view; interrupted, says what it is good for and ends the command."""
    try:
        with LiveView(console) as view:
            why = asyncio.run(_until_interrupted(campaign(view), console))
    except (KeyboardInterrupt, asyncio.CancelledError):
        try:
            _leave_behind(directory, console)
        except KeyboardInterrupt:
            _say(console, f"The report was not written: tunnelbench report {directory}")
        raise typer.Exit(_INTERRUPTED_STATUS) from None
    _say(console, f"Done: {why}.")


async def _until_interrupted(running: Coroutine[object, object, str], console: Console) -> str:
    """Cancels a campaign on Ctrl-C; another one does not break off what is being taken down since."""
    task, interrupted = asyncio.ensure_future(running), False

    def interrupt() -> None:
        nonlocal interrupted
        if interrupted:
            _say(console, "Stopping already: what is up is being taken down.")
            return
        interrupted = True
        task.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupt)
    try:
        return await task
    finally:
        loop.remove_signal_handler(signal.SIGINT)


def _run(campaign: Campaign, directory: Path, as_json: bool) -> None:
    console = Console(stderr=True)
    measure(campaign, directory, console)
    _report(directory, console, as_json)


def _leave_behind(directory: Path, console: Console) -> None:
    """What an interrupted campaign is good for: it can go on, and what is finished has its report."""
    if not (directory / FILE_NAME).exists():
        _say(console, "Stopped before the first trial.")
        return
    _say(console, f"Stopped; all finished trials are kept. Go on with: tunnelbench resume {directory}")
    with CampaignData(directory) as data:
        has_trials = data.has_trials()
    if has_trials:
        page, _ = build_report(directory, console)
        _say(console, f"Report of what is finished: {page}")


def _report(directory: Path, console: Console, as_json: bool) -> None:
    # Here, since they take memory that a campaign has better use for.
    from tunnelbench.report.as_json import report_json
    from tunnelbench.report.terminal import terminal_report

    page, content = build_report(directory, console)
    if as_json:
        typer.echo(report_json(content))
    else:
        Console().print(terminal_report(content))
    _say(console, f"Report: {page}")


def build_report(directory: Path, console: Console) -> tuple[Path, Content]:
    """Writes the report of a campaign; returns its page and what it says."""
    with console.status("Writing the report"):
        return build_report_apart(directory, directory)


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
