"""The command line: thin, every command in a file of its own."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

import tunnelbench
from tunnelbench.commands.ciphers import ciphers_command
from tunnelbench.commands.compare import compare_command
from tunnelbench.commands.doctor import doctor_command
from tunnelbench.commands.export import export_command
from tunnelbench.commands.image import image_app
from tunnelbench.commands.lab import lab_app
from tunnelbench.commands.list import list_app
from tunnelbench.commands.overhead import overhead_command
from tunnelbench.commands.prove import prove_command
from tunnelbench.commands.reproduce import reproduce_command
from tunnelbench.commands.run import report_command, resume_command, run_command
from tunnelbench.commands.study import study_app
from tunnelbench.errors import UserError
from tunnelbench.lab.connection import NodeError

_USER_ERROR_STATUS = 2
_NODE_ERROR_STATUS = 1

app = typer.Typer(
    no_args_is_help=True,
    help="Measure what a VPN costs.",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run_command)
app.command("resume")(resume_command)
app.command("report")(report_command)
app.command("reproduce")(reproduce_command)
app.command("compare")(compare_command)
app.command("export")(export_command)
app.command("doctor")(doctor_command)
app.command("prove")(prove_command)
app.command("overhead")(overhead_command)
app.command("ciphers")(ciphers_command)
app.add_typer(study_app, name="study")
app.add_typer(lab_app, name="lab")
app.add_typer(list_app, name="list")
app.add_typer(image_app, name="image")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tunnelbench {tunnelbench.__version__}")
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Measure what a VPN costs."""


def main() -> None:
    """Runs the command line; what the user can mend, and what a node complains of, has no traceback."""
    try:
        app()
    except UserError as error:
        console = Console(stderr=True)
        console.print(Text.assemble(("Error: ", "bold red"), error.message), soft_wrap=True)
        if error.advice:
            console.print(Text(error.advice), soft_wrap=True)
        sys.exit(_USER_ERROR_STATUS)
    except NodeError as error:
        Console(stderr=True).print(Text.assemble(("Error: ", "bold red"), str(error)), soft_wrap=True)
        sys.exit(_NODE_ERROR_STATUS)


if __name__ == "__main__":
    main()
