"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tunnelbench.errors import UserError
from tunnelbench.lab.lab import Runtime
from tunnelbench.study.fields import parse_systems
from tunnelbench.study.nearest import advice_on
from tunnelbench.study.quantity import parse_seconds
from tunnelbench.study.vocabulary import RuntimeChoice

Profile = Annotated[
    str | None,
    typer.Option(
        help="A profile of the study, such as smoke or as-published.",
        show_default="standard, where the study has it",
    ),
]

Out = Annotated[Path | None, typer.Option(help="The directory for results, new or empty.")]
Rounds = Annotated[int | None, typer.Option(min=1, help="Rounds, instead of the study's.")]
Budget = Annotated[
    str | None, typer.Option(help="Time for the whole campaign, such as 10m, instead of the study's.")
]
RuntimeName = Annotated[
    str | None,
    typer.Option(help="Where gateways run: auto, namespace or kernel, instead of the study's."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def seconds_of(text: str | None) -> float | None:
    """The seconds of `--budget`. Raises UserError where they are none."""
    if text is None:
        return None
    try:
        return parse_seconds(text)
    except ValueError as error:
        raise UserError(f"--budget: {error}") from None


def systems_of(text: str) -> str:
    """The image or the two that an option names, as a treatment has them. Raises UserError."""
    try:
        return parse_systems(text)
    except ValueError as error:
        raise UserError(str(error), advice="See what images there are: tunnelbench image list") from None


def parse_runtime_choice(text: str | None) -> RuntimeChoice | None:
    """The runtime that `--runtime` names, None where it isn't given. Raises UserError as `parse_runtime`."""
    if text is None:
        return None
    runtime = parse_runtime(text)
    return runtime.value if runtime else "auto"


def parse_runtime(text: str) -> Runtime | None:
    """The runtime that `--runtime` names; None for `auto`. Raises UserError with the nearest valid name."""
    if text == "auto":
        return None
    if text not in list(Runtime):
        raise UserError(f"unknown runtime '{text}'", advice=advice_on(text, ["auto", *Runtime], "runtimes"))
    return Runtime(text)
