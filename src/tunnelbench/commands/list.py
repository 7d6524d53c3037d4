"""`tunnelbench list`: what there is to name in a study."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable
from itertools import product
from typing import Annotated, get_args

import typer
from rich.console import Console
from rich.table import Table

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.commands.options import Json
from tunnelbench.load import drivers
from tunnelbench.study.library import bundled
from tunnelbench.study.vocabulary import Transport
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Traffic, Tunnel, written
from tunnelbench.tunnels.unavailable import UNAVAILABLE

list_app = typer.Typer(no_args_is_help=True, help="List VPNs, suites, studies, load tools and profiles.")

_EITHER = "either"
"""The kernel or a program, by an option of the VPN."""

Row = dict[str, str | list[str] | dict[str, list[str]]]


def _vpn_names() -> list[str]:
    return list(all_tunnels())


@list_app.command()
def vpns(as_json: Json = False) -> None:
    """Every VPN: its name, what it is, how many suites it has, what it carries, what handles its packets."""
    found = all_tunnels().values()
    if as_json:
        _print_json([*map(_everything_about, found), *_unavailable()])
        return
    _print_table(
        [
            {
                "name": tunnel.name,
                "title": tunnel.title,
                "suites": str(len(tunnel.suites)),
                "carries": _carries(tunnel.carries),
                "packets": _EITHER if len(handlers := _handlers(tunnel)) > 1 else handlers[0],
            }
            for tunnel in found
        ]
    )
    for name, one in UNAVAILABLE.items():
        typer.echo(f"\n{name} ({one.title}) can't be had: {one.reason}.")


@list_app.command()
def suites(
    vpn: Annotated[str | None, typer.Argument(help="One VPN alone.", autocompletion=_vpn_names)] = None,
    as_json: Json = False,
) -> None:
    """Every cipher suite, as studies name it."""
    chosen = [vpn] if vpn else list(all_tunnels())
    rows: list[Row] = [
        {
            "name": f"{choice.vpn}/{choice.suite}",
            "encryption": all_tunnels()[choice.vpn].suites[choice.suite].encryption,
            "integrity": all_tunnels()[choice.vpn].suites[choice.suite].integrity,
        }
        for name in chosen
        for choice in catalogue().tunnels(f"{name}/*")
    ]
    _show(rows, as_json)


@list_app.command()
def options(
    vpn: Annotated[str | None, typer.Argument(help="One VPN alone.", autocompletion=_vpn_names)] = None,
    as_json: Json = False,
) -> None:
    """Every option of VPNs besides the suite, the default level first."""
    chosen = [choice.vpn for choice in catalogue().tunnels(f"{vpn}/*")[:1]] if vpn else list(all_tunnels())
    rows: list[Row] = [
        {"vpn": name, "option": option.name, "levels": list(option.levels), "meaning": option.meaning}
        for name in chosen
        for option in all_tunnels()[name].options.values()
    ]
    _show(rows, as_json)


@list_app.command()
def studies(as_json: Json = False) -> None:
    """The studies that come with tunnelbench."""
    rows: list[Row] = []
    for name, path in bundled().items():
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        about = document["study"]
        row: Row = {
            "name": name,
            "profiles": list(document.get("profiles", {})),
            "question": about["question"],
        }
        rows.append({**row, "title": about["title"], "file": str(path)} if as_json else row)
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


def _everything_about(tunnel: Tunnel) -> Row:
    return {
        "name": tunnel.name,
        "title": tunnel.title,
        "suites": list(tunnel.suites),
        "options": {option.name: list(option.levels) for option in tunnel.options.values()},
        "carries": sorted(f"{transport} over {family.value}" for transport, family in tunnel.carries),
        "outer_ip": sorted(tunnel.outer_families),
        "topologies": sorted(tunnel.topologies),
        "packets": _handlers(tunnel),
    }


def _unavailable() -> list[Row]:
    return [
        {"name": name, "title": one.title, "unavailable": one.reason} for name, one in UNAVAILABLE.items()
    ]


def _handlers(tunnel: Tunnel) -> list[str]:
    """What handles the packets of its variants: the kernel, a program, or, by option, either."""
    names = list(tunnel.options)
    variants = (
        tunnel.variant(next(iter(tunnel.suites)), dict(zip(names, levels, strict=True)))
        for levels in product(*(option.levels for option in tunnel.options.values()))
    )
    return sorted({"kernel" if tunnel.in_kernel(variant) else "program" for variant in variants})


def _carries(carried: Iterable[Traffic]) -> str:
    """IP versions, with the transports where not every one is carried: `IPv4, IPv6`, `TCP; IPv4`."""
    all_carried = frozenset(carried)
    transports: dict[tuple[str, ...], list[str]] = {}
    for transport in sorted({transport for transport, _ in all_carried}):
        families = tuple(sorted(written(family) for carried, family in all_carried if carried == transport))
        transports.setdefault(families, []).append(transport.upper())
    return " / ".join(
        ", ".join(families)
        if len(names) == len(get_args(Transport))
        else f"{', '.join(names)}; {', '.join(families)}"
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
        table.add_row(*(cell if isinstance(cell, str) else ", ".join(cell) for cell in row.values()))
    Console().print(table)
