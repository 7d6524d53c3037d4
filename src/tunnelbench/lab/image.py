"""Images: cached Debian root trees, each with its own kernel and every VPN program, that nodes run on.

A cache holds `images/NAME/root` (the tree) and `images/NAME/image.json` (what is in it). A directory under
`images` is an image if and only if it has that file: builds work in a hidden directory beside and are renamed
into place when they are complete.
"""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import re
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict, Field

from tunnelbench.errors import UserError
from tunnelbench.lab import extras, image_tree
from tunnelbench.lab.bootstrap import BuildStep, Report
from tunnelbench.lab.image_host import discard
from tunnelbench.lab.image_tree import Recipe, TreeDescription

RELEASES = tuple(image_tree.MISSING_PACKAGES)
"""The Debian releases that images can be made of, oldest first."""

DEFAULT_IMAGE = "bookworm"
DESCRIPTION = "image.json"

Assemble = Callable[[Recipe, Path, Path, Report], TreeDescription]
"""Makes a tree: of what, directory to put `root` in, cache for what took long, report of progress."""


class Image(BaseModel):
    """A built image."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    release: str
    """Debian's code name, such as `bookworm`."""
    directory: Path = Field(exclude=True)
    """Where the image lies in the cache."""
    suites: tuple[str, ...]
    """The suites its packages came from, such as `bookworm` and `bookworm-security`."""
    kernel: str
    """The User Mode Linux program's path inside the tree."""
    kernel_version: str
    modules_version: str
    """The name under `/lib/modules` inside the tree."""
    packages: dict[str, str]
    """Every installed package's version."""
    kernel_source: str | None = None
    """The source package that the kernel was built from, with its version; None for Debian's own kernel."""
    kernel_additions: tuple[str, ...] = ()
    """The options (Kconfig) that a kernel built from source has beyond Debian's own."""
    extras: dict[str, str] = {}
    """The versions of programs that came from elsewhere than Debian."""
    built_at: datetime

    @property
    def root(self) -> Path:
        """The root tree; to be used as the lower, never written layer of an overlay."""
        return self.directory / "root"

    def command_with(self, extra: str) -> str:
        """The command that builds it anew with an extra program more."""
        wanted = [f"--with {name}" for name in sorted({*self.extras, extra})]
        return " ".join([_build_command(self.name, self.release), *self._kernel_option, *wanted])

    @property
    def command_from_source(self) -> str:
        """The command that builds another one like it, with a kernel from source."""
        wanted = [f"--with {name}" for name in sorted(self.extras)]
        return " ".join([_build_command(f"{self.name}-source", self.release), "--kernel source", *wanted])

    @property
    def _kernel_option(self) -> tuple[str, ...]:
        return ("--kernel source",) if self.kernel_source else ()


def cache_directory() -> Path:
    """Where what can be made again is kept: TUNNELBENCH_CACHE, or `tunnelbench` in the user's cache."""
    if own := os.environ.get("TUNNELBENCH_CACHE"):
        return Path(own).absolute()
    # The XDG base directory specification says to ignore relative paths.
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (xdg if xdg.is_absolute() else Path.home() / ".cache") / "tunnelbench"


def build(
    name: str,
    recipe: Recipe,
    progress: Report = lambda _: None,
    assemble: Assemble = image_tree.assemble,
) -> Image:
    """Builds an image, in place of one of that name; takes about half a minute and 700 MB while at it.

    With a kernel from source, the first time takes ten minutes more, and 4 GB.

    If another process is building the same image, waits for it and returns that one. Raises UserError when
    the release is unknown or the build fails. A failed, interrupted or killed build leaves an older image as
    it was; what it left behind goes with the next build.
    """
    _check_name(name)
    if recipe.release not in RELEASES:
        raise UserError(
            f"unknown Debian release: {recipe.release}",
            advice=f"Images can be made of {', '.join(RELEASES)}.",
        )
    if unknown := sorted(set(recipe.extras) - extras.EXTRAS.keys()):
        raise UserError(
            f"an image can't have {', '.join(unknown)}", advice=f"Extras are {', '.join(extras.EXTRAS)}."
        )
    if absent := [extra for extra in recipe.extras if not extras.EXTRAS[extra].runs_on(recipe.release)]:
        raise UserError(f"Debian {recipe.release} can't run {', '.join(absent)}")
    try:
        with _build_lock(name, progress) as waited:
            if waited and (built := _read(_images() / name)) is not None:
                return built
            return _build_locked(name, recipe, progress, assemble)
    except OSError as error:
        raise UserError(
            f"image {name} can't be built: {error.filename or _images()}: {error.strerror}",
            advice="Set TUNNELBENCH_CACHE to a directory you can write to, with 700 MB of room.",
        ) from error


def find(name: str = DEFAULT_IMAGE) -> Image:
    """The image of that name; raises UserError with the command to build it where there is none."""
    _check_name(name)
    image = _read(_images() / name)
    if image is None:
        raise UserError(f"image {name} is not built", advice=f"Build it: {_build_command(name)}")
    return image


def ensure(name: str = DEFAULT_IMAGE, progress: Report = lambda _: None) -> Image:
    """The image of that name, built first if it is missing and is named after a Debian release."""
    _check_name(name)
    image = _read(_images() / name)
    if image is None and name in RELEASES:
        return build(name, Recipe(name), progress)
    return find(name)


def release_of(name: str) -> str | None:
    """The Debian release of the image of that name; None where it is not built and its name tells of none.

    What is built counts: an image can be named after one release and made of another.
    """
    description = _images() / name / DESCRIPTION
    try:
        return json.loads(description.read_text())["release"]
    except (OSError, ValueError, TypeError, KeyError):
        return name if name in RELEASES else None


def list_images() -> list[Image]:
    """All complete images, by name."""
    found = (_read(path) for path in sorted(_images().glob("*")))
    return [image for image in found if image is not None]


def remove(name: str) -> None:
    """Deletes an image; raises UserError where there is none of that name, or while it is being built."""
    _check_name(name)
    directory = _images() / name
    if not (directory / DESCRIPTION).exists():
        raise UserError(f"there is no image {name}", advice="See what there is: tunnelbench image list")
    with _lock_file(name).open("a") as lock:
        if not _try_lock(lock):
            raise UserError(
                f"image {name} is being built by another process", advice="Wait until that is done."
            )
        discard(_retired(name))
        directory.rename(_retired(name))
        discard(_retired(name))


def _build_locked(name: str, recipe: Recipe, progress: Report, assemble: Assemble) -> Image:
    building, final = _images() / f".{name}.building", _images() / name
    discard(building)
    discard(_retired(name))
    building.mkdir()
    try:
        tree = assemble(recipe, building, cache_directory(), progress)
        image = Image(
            name=name,
            release=recipe.release,
            directory=final,
            built_at=datetime.now(UTC),
            **dataclasses.asdict(tree),
        )
        (building / DESCRIPTION).write_text(image.model_dump_json(indent=2) + "\n")
        if final.exists():
            final.rename(_retired(name))
        building.rename(final)
    finally:
        discard(building)
        discard(_retired(name))
    progress(BuildStep("done", 1.0))
    return image


def _read(directory: Path) -> Image | None:
    description = directory / DESCRIPTION
    if directory.name.startswith(".") or not description.exists():
        return None
    try:
        return Image.model_validate({**json.loads(description.read_text()), "directory": directory})
    except (ValueError, TypeError) as error:
        raise UserError(
            f"{description} is damaged", advice=f"Build the image again: {_build_command(directory.name)}"
        ) from error


@contextmanager
def _build_lock(name: str, progress: Report) -> Generator[bool]:
    """Keeps other builds of the image out; yields whether there was another one to wait for."""
    _images().mkdir(parents=True, exist_ok=True)
    with _lock_file(name).open("a") as lock:
        waiting = not _try_lock(lock)
        if waiting:
            progress(BuildStep("waiting for another build of this image", 0.0))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield waiting


def _try_lock(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _check_name(name: str) -> None:
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,63}", name):
        raise UserError(
            f"{name!r} can't name an image",
            advice="Use lower-case letters, digits, dots, hyphens and underscores, letters or digits first.",
        )


def _build_command(name: str, release: str = DEFAULT_IMAGE) -> str:
    return f"tunnelbench image build {name}" + ("" if name in RELEASES else f" --release {release}")


def _images() -> Path:
    return cache_directory() / "images"


def _lock_file(name: str) -> Path:
    # Stays when the image goes: were it deleted, one build could hold the old file and another the new one.
    return _images() / f".{name}.lock"


def _retired(name: str) -> Path:
    return _images() / f".{name}.retired"
