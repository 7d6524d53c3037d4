"""`tunnelbench ciphers`: how fast the cryptography of suites is on its own."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.campaign.cryptography import suite_alone
from tunnelbench.ciphers.cost import REFERENCE_BYTES
from tunnelbench.ciphers.measure import Alone, time_suites
from tunnelbench.commands.options import parse_runtime
from tunnelbench.errors import UserError
from tunnelbench.lab import image as images
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Runtime
from tunnelbench.lab.runtimes import place
from tunnelbench.report.wording import NOTHING, number
from tunnelbench.study.catalogue import Choice
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Variant


@dataclass(frozen=True)
class Timed:
    """A tunnel, where its gateways run, and what its cryptography costs there."""

    name: str
    variant: Variant
    runtime: Runtime | None
    alone: Alone


def _complete_tunnels() -> list[str]:
    return [f"{name}/{suite}" for name, tunnel in all_tunnels().items() for suite in tunnel.suites]


def ciphers_command(
    tunnels: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[VPN[/SUITE]]...",
            help="May be globs, and quoted with options: 'openvpn/* carrier=tcp'; all where none is named.",
            autocompletion=_complete_tunnels,
        ),
    ] = None,
    image: Annotated[str, typer.Option(help="The image of the gateways.")] = images.DEFAULT_IMAGE,
    runtime: Annotated[str, typer.Option(help="Where gateways run: auto, namespace or kernel.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time the ciphers and integrity checks of suites on their own, where their gateways would run.

    The kernel's through AF_ALG sockets, those of programs with OpenSSL, whatever library a program has. No
    tunnel can be faster than this on one processor. Takes half a second to two for each algorithm.
    """
    patterns = tunnels or [f"{name}/*" for name in all_tunnels()]
    choices = dict.fromkeys(choice for pattern in patterns for choice in catalogue().tunnels(pattern))
    wanted = {
        choice: variant for choice in choices if (variant := _variant(choice)).suite.encryption != "none"
    }
    if not wanted:
        raise UserError(f"{' '.join(patterns)}: there is nothing that encrypts")
    with Console(stderr=True).status("timing"):
        timed = asyncio.run(_time(images.find(image), wanted, parse_runtime(runtime)))
    if as_json:
        typer.echo(json.dumps([_as_json(one) for one in timed], indent=2))
        return
    Console().print(_table(timed))


def _variant(choice: Choice) -> Variant:
    return all_tunnels()[choice.vpn].variant(choice.suite, choice.levels)


async def _time(image: Image, wanted: Mapping[Choice, Variant], forced: Runtime | None) -> list[Timed]:
    needs = {choice: all_tunnels()[choice.vpn].needs(variant) for choice, variant in wanted.items()}
    placements = await place(image, needs, forced)
    suites = {choice: suite_alone(all_tunnels()[choice.vpn], variant) for choice, variant in wanted.items()}
    alone = {
        runtime: await time_suites(
            image, runtime, {suites[choice] for choice in wanted if placements[choice].runtime is runtime}
        )
        for runtime in Runtime
        if any(placements[choice].runtime is runtime for choice in wanted)
    }
    return [
        Timed(
            choice.name,
            variant,
            runtime := placements[choice].runtime,
            alone[runtime][suites[choice]] if runtime else Alone(NOTHING, None, placements[choice].reason),
        )
        for choice, variant in wanted.items()
    ]


def _table(timed: Sequence[Timed]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for heading in ("tunnel", "runs in"):
        table.add_column(heading, overflow="fold")
    for heading in ("ns per\npacket", "ns per\nbyte", f"Mbit/s at\n{REFERENCE_BYTES} bytes"):
        table.add_column(heading, justify="right")
    table.add_column("", overflow="fold")
    for one in timed:
        cost = one.alone.cost
        figures = (
            (number(cost.ns_per_packet), number(cost.ns_per_byte), number(cost.mbit_per_second()))
            if cost
            else (NOTHING,) * 3
        )
        table.add_row(one.name, one.alone.implementation, *figures, one.alone.reason or "")
    return table


def _as_json(one: Timed) -> dict[str, object]:
    cost = one.alone.cost
    return {
        "tunnel": one.name,
        "encryption": one.variant.suite.encryption,
        "integrity": one.variant.suite.integrity,
        "runtime": one.runtime.value if one.runtime else None,
        "implementation": one.alone.implementation,
        "ns_per_packet": cost.ns_per_packet if cost else None,
        "ns_per_byte": cost.ns_per_byte if cost else None,
        "mbit_per_second": cost.mbit_per_second() if cost else None,
        "payload_bytes": REFERENCE_BYTES,
        "reason": one.alone.reason,
    }
