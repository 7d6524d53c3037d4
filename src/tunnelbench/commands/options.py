"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

from tunnelbench.errors import UserError
from tunnelbench.lab.lab import Runtime
from tunnelbench.study.nearest import advice_on
from tunnelbench.study.vocabulary import RuntimeChoice

Profile = Annotated[
    str | None,
    typer.Option(
        help="A profile of the study, such as smoke or as-published.",
        show_default="standard, where the study has it",
    ),
]


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
