"""`tunnelbench lab`: keep a lab open for hand work."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.campaign.proving import usual_suite
from tunnelbench.commands.hold import Wish
from tunnelbench.commands.image import build_with_progress
from tunnelbench.commands.options import Json, parse_runtime, systems_of
from tunnelbench.errors import UserError
from tunnelbench.lab import attach, rendezvous
from tunnelbench.lab import image as images
from tunnelbench.lab.holder_messages import ComingUp, Description
from tunnelbench.lab.image_tree import Recipe
from tunnelbench.lab.topology import TOPOLOGIES
from tunnelbench.study.catalogue import Choice
from tunnelbench.study.nearest import advice_on
from tunnelbench.study.systems import read_systems
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.vocabulary import InternetProtocol
from tunnelbench.tunnels import all_tunnels

lab_app = typer.Typer(no_args_is_help=True, help="Keep a lab open, and work in it by hand.")

_DEFAULT_NAME = "lab"
_DEFAULT_TOPOLOGY = "site-to-site"
_PROGRAM = {"ignore_unknown_options": True, "allow_interspersed_args": False}


def _complete_tunnels() -> list[str]:
    return [f"{vpn}/{suite}" for vpn, tunnel in all_tunnels().items() for suite in tunnel.suites]


def _complete_nodes() -> list[str]:
    return [name for topology in TOPOLOGIES.values() for name in topology.nodes]


Name = Annotated[
    str, typer.Option(help="The lab's name.", autocompletion=rendezvous.open_labs, show_default=True)
]
NodeName = Annotated[str, typer.Argument(help="The node's name.", autocompletion=_complete_nodes)]


@lab_app.command()
def up(
    tunnel: Annotated[
        str,
        typer.Argument(
            metavar="[VPN[/SUITE]]", help="What joins the sites.", autocompletion=_complete_tunnels
        ),
    ] = "open",
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPTION=LEVEL]...", help="Levels of the VPN's options."),
    ] = None,
    outer: Annotated[
        str | None, typer.Option(help="IP between the gateways: ipv4 or ipv6.", show_default="ipv4")
    ] = None,
    clients: Annotated[int, typer.Option(min=1, max=64, help="Clients of a remote-access lab.")] = 1,
    name: Name = _DEFAULT_NAME,
    topology: Annotated[
        str, typer.Option(help="The network to build.", autocompletion=lambda: list(TOPOLOGIES))
    ] = _DEFAULT_TOPOLOGY,
    runtime: Annotated[str, typer.Option(help="Where the gateways run: auto, namespace or kernel.")] = "auto",
    gateway_os: Annotated[
        str, typer.Option(help="The image that gateways run, or those of gw1 and gw2: bookworm+trixie.")
    ] = images.DEFAULT_IMAGE,
    host_os: Annotated[
        str | None,
        typer.Option(help="The same of hosts and clients.", show_default="the gateways'"),
    ] = None,
    mtu: Annotated[int, typer.Option(min=68, max=65_535, help="The MTU of all links, bytes.")] = 1500,
    as_json: Json = False,
) -> None:
    """Bring a lab up with a tunnel in it, and leave it open; an iperf3 server runs on its last host."""
    if topology not in TOPOLOGIES:
        raise UserError(
            f"unknown topology '{topology}'", advice=advice_on(topology, TOPOLOGIES, "topologies")
        )
    choice = _choice(tunnel, options or [])
    treatment = Treatment(
        vpn=choice.vpn,
        suite=choice.suite,
        options=choice.options,
        outer_ip=_internet_protocol(outer or catalogue().vpns[choice.vpn].default_outer_ip),
        clients=clients,
        gateway_os=_ready(gateway_os),
        host_os=_ready(host_os or gateway_os),
        mtu=mtu,
    )
    if objection := catalogue().vpns[choice.vpn].objection(treatment, topology):
        raise UserError(f"{treatment.tunnel}: {objection}")
    wish = Wish(name, treatment.model_dump(), topology, parse_runtime(runtime))
    console = Console(stderr=True)
    with console.status("starting") as status:

        def show(step: str) -> None:
            status.update(step)
            if not console.is_terminal:
                console.print(step)

        command = [sys.executable, "-m", "tunnelbench.commands.hold"]
        description = attach.bring_up(command, msgspec.json.encode(wish), show)
    if as_json:
        typer.echo(_json(description))
        return
    _show(description)


@lab_app.command("exec", context_settings=_PROGRAM)
def execute(
    node: NodeName,
    command: Annotated[list[str], typer.Argument(help="The program and its arguments, best after --.")],
    name: Name = _DEFAULT_NAME,
) -> None:
    """Run a program on a node, with this command's input, output, signals and exit code."""
    # All after the node is the program's, so the parser leaves the separator to us.
    raise typer.Exit(_execute(name, node, command[1:] if command[0] == "--" else command))


@lab_app.command()
def shell(node: NodeName, name: Name = _DEFAULT_NAME) -> None:
    """Open a shell on a node."""
    raise typer.Exit(_execute(name, node, ["bash"]))


@lab_app.command()
def down(name: Name = _DEFAULT_NAME) -> None:
    """Take a lab down; returns when nothing of it is left."""
    attach.take_down(name)
    typer.echo(f"lab {name} is down")


@lab_app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the labs that are up."""
    found = {name: attach.describe(name) for name in rendezvous.open_labs()}
    if as_json:
        typer.echo(
            json.dumps([{"name": name, **msgspec.to_builtins(lab)} for name, lab in found.items()], indent=2)
        )
        return
    if not found:
        typer.echo("no labs are up; bring one up: tunnelbench lab up")
        return
    table = Table("lab", "tunnel", "topology", "system", "gateways", "state", box=None, pad_edge=False)
    for name, lab in found.items():
        if isinstance(lab, ComingUp):
            table.add_row(name, "", "", "", "", lab.step)
        else:
            state = lab.trouble or "up"
            table.add_row(name, lab.tunnel, lab.topology, lab.systems, lab.runtime, state)
    Console().print(table)


def _choice(tunnel: str, options: list[str]) -> Choice:
    """The tunnel that is meant; where no suite is named, the first AEAD, else the first of all."""
    if tunnel in all_tunnels():
        tunnel = f"{tunnel}/{usual_suite(all_tunnels()[tunnel])}"
    pattern = " ".join([tunnel, *options])
    found, *others = catalogue().tunnels(pattern)
    if others:
        raise UserError(
            f"{pattern} means {len(others) + 1} tunnels", advice="A lab has one; name its suite and options."
        )
    return found


def _internet_protocol(name: str) -> InternetProtocol:
    match name:
        case "ipv4" | "ipv6":
            return name
        case _:
            raise UserError(f"unknown IP version '{name}'", advice="Valid IP versions: ipv4, ipv6.")


def _ready(text: str) -> str:
    """The systems that are named, with their images built."""
    level = systems_of(text)
    for name in read_systems(level).images:
        if name in images.RELEASES and name not in [image.name for image in images.list_images()]:
            build_with_progress(name, Recipe(name))
        images.find(name)
    return level


def _execute(name: str, node: str, command: list[str]) -> int:
    on_terminal = os.isatty(0) and os.isatty(1)
    environment = {"TERM": os.environ.get("TERM", "dumb")} if on_terminal else {}
    return attach.execute(name, node, command, environment=environment, on_terminal=on_terminal)


def _json(lab: Description) -> str:
    return json.dumps(msgspec.to_builtins(lab), indent=2)


def _show(lab: Description) -> None:
    console = Console()
    console.print(
        f"lab {lab.name} is up: {lab.tunnel}, {lab.topology}, {lab.systems}, MTU {lab.mtu}", highlight=False
    )
    table = Table("node", "runs as", "Linux", "addresses", box=None, pad_edge=False)
    for node in lab.nodes:
        table.add_row(node.name, node.runtime, node.kernel, ", ".join(node.addresses))
    console.print(table)
    for line in (f"gateways: {lab.reason}", lab.proof, lab.hint):
        if line:
            console.print(line, highlight=False, soft_wrap=True)
    name = "" if lab.name == _DEFAULT_NAME else f"--name {lab.name} "
    first, last = lab.nodes[0].name, lab.nodes[-1].name
    console.print(
        f"try: tunnelbench lab exec {name}{first} -- iperf3 -c {last}", highlight=False, soft_wrap=True
    )
