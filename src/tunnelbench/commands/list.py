"""`tunnelbench list`: what there is to name in a study."""

from __future__ import annotations

import json
import tomllib
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.load import drivers
from tunnelbench.study.library import bundled
from tunnelbench.tunnels import all_tunnels

list_app = typer.Typer(no_args_is_help=True, help="List VPNs, suites, studies and load tools.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Row = dict[str, str | list[str]]


def _vpn_names() -> list[str]:
    return list(all_tunnels())


@list_app.command()
def vpns(as_json: Json = False) -> None:
    """Every VPN: its name, what it is, how many suites it has and what it carries."""
    rows: list[Row] = [
        {
            "name": name,
            "title": vpn.title,
            "suites": list(vpn.suites),
            "carries": sorted(f"{transport} over {ip}" for transport, ip in vpn.carries),
            "packets": "in the kernel" if all_tunnels()[name].in_kernel else "through a program",
        }
        for name, vpn in catalogue().vpns.items()
    ]
    _show(rows, as_json)


@list_app.command()
def suites(
    vpn: Annotated[str | None, typer.Argument(help="One VPN alone.", autocompletion=_vpn_names)] = None,
    as_json: Json = False,
) -> None:
    """Every cipher suite, as studies name it."""
    chosen = [vpn] if vpn else list(all_tunnels())
    pairs = [pair for name in chosen for pair in catalogue().tunnels(f"{name}/*")]
    rows: list[Row] = []
    for name, suite_name in pairs:
        suite = all_tunnels()[name].suites[suite_name]
        rows.append(
            {"name": f"{name}/{suite_name}", "encryption": suite.encryption, "integrity": suite.integrity}
        )
    _show(rows, as_json)


@list_app.command()
def studies(as_json: Json = False) -> None:
    """The studies that come with tunnelbench."""
    rows: list[Row] = []
    for name, path in bundled().items():
        about = tomllib.loads(path.read_text(encoding="utf-8"))["study"]
        rows.append({"name": name, "title": about["title"], "question": about["question"]})
    _show(rows, as_json)


@list_app.command()
def loads(as_json: Json = False) -> None:
    """The load tools and what each can measure."""
    rows: list[Row] = [
        {"name": name, "title": driver.title, "measures": sorted(driver.measures)}
        for name, driver in drivers().items()
    ]
    _show(rows, as_json)


def _show(rows: list[Row], as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in rows[0]:
        table.add_column(column, overflow="fold", no_wrap=column == "name")
    for row in rows:
        table.add_row(*(", ".join(cell) if isinstance(cell, list) else cell for cell in row.values()))
    Console().print(table)
