"""`tunnelbench image`: build, list and remove the images that nodes run on."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from tunnelbench.errors import UserError
from tunnelbench.lab import image as images
from tunnelbench.lab.bootstrap import BuildStep
from tunnelbench.lab.extras import EXTRAS
from tunnelbench.lab.image_tree import KernelOrigin, Recipe

image_app = typer.Typer(no_args_is_help=True, help="Build, list and remove the images that nodes run on.")

_SHOWN_PACKAGES = {
    "openvpn": "openvpn",
    "openssh": "openssh-server",
    "wireguard-go": "wireguard-go",
    "iperf3": "iperf3",
}
"""Columns of the list, and the packages whose versions they show."""


def _image_names() -> list[str]:
    return [image.name for image in images.list_images()]


def _release_names() -> list[str]:
    return list(images.RELEASES)


@image_app.command()
def build(
    name: Annotated[
        str, typer.Argument(help="The image's name.", autocompletion=_release_names)
    ] = images.DEFAULT_IMAGE,
    release: Annotated[
        str | None,
        typer.Option(
            help="The Debian release it is made of; the image's name unless said otherwise.",
            autocompletion=_release_names,
        ),
    ] = None,
    mirror: Annotated[
        str | None,
        typer.Option(help="The Debian mirror's address; this host's apt sources unless said otherwise."),
    ] = None,
    kernel: Annotated[
        KernelOrigin,
        typer.Option(
            help="Debian's User Mode Linux, or one built from Debian's kernel source with WireGuard, "
            "OpenVPN's offload and Wi-Fi in it: ten minutes more, the first time."
        ),
    ] = "package",
    extras: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            help="A program that Debian has not got, built on this host; can be given several times.",
            autocompletion=lambda: list(EXTRAS),
        ),
    ] = None,
    if_missing: Annotated[
        bool, typer.Option("--if-missing", help="Leave an image of that name as it is.")
    ] = False,
) -> None:
    """Build an image, or build it anew: half a minute, and 700 MB of disk while at it."""
    if release is None and name not in images.RELEASES:
        raise UserError(
            f"{name} is not a Debian release that images can be made of",
            advice=f"Name the release: tunnelbench image build {name} --release {images.DEFAULT_IMAGE}",
        )
    if if_missing and name in _image_names():
        return
    recipe = Recipe(release or name, mirror, kernel, tuple(dict.fromkeys(extras or [])))
    image = build_with_progress(name, recipe)
    typer.echo(f"image {image.name}: Linux {image.kernel_version}, {len(image.packages)} packages")
    typer.echo(image.directory)


@image_app.command("list")
def list_command(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print JSON, with every package's version.")
    ] = False,
) -> None:
    """List the images that are built, with the versions of their kernels and VPN programs."""
    found = images.list_images()
    if as_json:
        described = [{**image.model_dump(mode="json"), "directory": str(image.directory)} for image in found]
        typer.echo(json.dumps(described, indent=2))
        return
    if not found:
        typer.echo("no images; build one: tunnelbench image build")
        return
    table = Table("image", "release", "kernel", *_SHOWN_PACKAGES, "built", box=None, pad_edge=False)
    for image in found:
        versions = (_upstream(image.packages.get(package, "-")) for package in _SHOWN_PACKAGES.values())
        table.add_row(
            image.name, image.release, image.kernel_version, *versions, f"{image.built_at:%Y-%m-%d}"
        )
    Console().print(table)


@image_app.command()
def remove(
    name: Annotated[str, typer.Argument(help="The image's name.", autocompletion=_image_names)],
) -> None:
    """Remove an image. Labs that run on it must be down."""
    images.remove(name)
    typer.echo(f"removed image {name}")


def build_with_progress(name: str, recipe: Recipe) -> images.Image:
    """Builds an image and shows how far it has come on standard error."""
    console = Console(stderr=True)
    columns = SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"image {name}", total=1.0)

        def show(step: BuildStep) -> None:
            bar.update(task, completed=step.share, description=f"image {name}: {step.text}")
            if not console.is_terminal:
                console.print(f"image {name}: {step.text}")

        return images.build(name, recipe, show)


def _upstream(version: str) -> str:
    """A Debian version without its epoch and revision."""
    without_epoch = version.rpartition(":")[2]
    return without_epoch.rpartition("-")[0] or without_epoch
