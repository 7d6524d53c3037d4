"""`tunnelbench list`: what there is to name in a study."""

from __future__ import annotations

import json
import tomllib
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.load import drivers
from tunnelbench.study.catalogue import Vpn
from tunnelbench.study.library import bundled
from tunnelbench.study.vocabulary import Transport
from tunnelbench.tunnels import all_tunnels

list_app = typer.Typer(no_args_is_help=True, help="List VPNs, suites, studies, load tools and profiles.")

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Row = dict[str, str | list[str]]


def _vpn_names() -> list[str]:
    return list(all_tunnels())


@list_app.command()
def vpns(as_json: Json = False) -> None:
    """Every VPN: its name, what it is, how many suites it has, what it carries, what handles its packets."""
    known = catalogue().vpns.values()
    if as_json:
        _print_json([_everything_about(vpn) for vpn in known])
        return
    _print_table(
        [
            {
                "name": vpn.name,
                "title": vpn.title,
                "suites": str(len(vpn.suites)),
                "carries": _carries(vpn),
                "packets": "kernel" if all_tunnels()[vpn.name].in_kernel else "program",
            }
            for vpn in known
        ]
    )


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


@list_app.command()
def profiles(as_json: Json = False) -> None:
    """The traffic profiles: what applications send."""
    rows: list[Row] = [
        {
            "name": profile.name,
            "over": sorted(transport.upper() for transport in profile.transports),
            "title": profile.title,
        }
        for profile in catalogue().profiles.values()
    ]
    _show(rows, as_json)


def _everything_about(vpn: Vpn) -> Row:
    return {
        "name": vpn.name,
        "title": vpn.title,
        "suites": list(vpn.suites),
        "carries": sorted(f"{transport} over {ip}" for transport, ip in vpn.carries),
        "packets": "in the kernel" if all_tunnels()[vpn.name].in_kernel else "through a program",
    }


def _carries(vpn: Vpn) -> str:
    """IP versions, with the transports where not every one is carried: `IPv4, IPv6`, `TCP; IPv4`."""
    transports: dict[tuple[str, ...], list[str]] = {}
    for transport in sorted({transport for transport, _ in vpn.carries}):
        families = tuple(sorted(ip for carried, ip in vpn.carries if carried == transport))
        transports.setdefault(families, []).append(transport.upper())
    return " / ".join(
        ", ".join(ip.replace("ip", "IP") for ip in families)
        if len(names) == len(get_args(Transport))
        else f"{', '.join(names)}; {', '.join(ip.replace('ip', 'IP') for ip in families)}"
        for families, names in transports.items()
    )


def _show(rows: list[Row], as_json: bool) -> None:
    if as_json:
        _print_json(rows)
    else:
        _print_table(rows)


def _print_json(rows: list[Row]) -> None:
    typer.echo(json.dumps(rows, indent=2))


def _print_table(rows: list[Row]) -> None:
    table = Table(box=None, padding=(0, 1), pad_edge=False, collapse_padding=True)
    for column in rows[0]:
        table.add_column(column, overflow="fold", no_wrap=column in ("name", "carries"))
    for row in rows:
        table.add_row(*(", ".join(cell) if isinstance(cell, list) else cell for cell in row.values()))
    Console().print(table)
