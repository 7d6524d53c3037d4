"""Builds a User Mode Linux kernel from Debian's kernel source, in a throw-away tree with its own compilers.

Such a kernel has WireGuard, simulated Wi-Fi and more that Debian's lacks (see `kernel_configuration`), all
built in; OpenVPN's data channel offload is a module beside it, where the release has its source. What is
built is kept in the cache, by release, version of the source, and configuration.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import BaseModel, ConfigDict, Field

from tunnelbench.errors import UserError
from tunnelbench.lab import image_host, kernel_configuration
from tunnelbench.lab.bootstrap import BuildStep, Report, bootstrap, part, run_watched, versions
from tunnelbench.lab.mirror import AptSource

DESCRIPTION = "kernel.json"
PROGRAM = "linux"
MODULES = "modules"

_COMPILERS = ("build-essential", "flex", "bison", "bc", "xz-utils", "kmod", "python3-minimal", "libssl-dev")
_OFFLOAD = "openvpn-dco-dkms"
_RELEASES_WITH_OFFLOAD = ("bookworm", "trixie")
_SOURCES = "/usr/src"
# A tree that an ordinary user unpacked has no devices.
_ENTER = ("sh", "-c", 'mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"')
_STEP_OF_MAKE = re.compile(r"  [A-Z]+ +\S+$|make(\[\d+\])?: (Entering|Leaving) directory")
"""What make says of each step; an error stands far above the last of them where steps run side by side."""
_COMPILED_FILES = 2700
"""About how many there are; only the display of progress depends on it."""


class BuiltKernel(BaseModel):
    """A kernel in the cache."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    directory: Path = Field(exclude=True)
    """Holds the program `linux`, and `modules`, which is to be a directory of /lib/modules."""
    version: str
    """As `uname -r` says it."""
    source: str
    """The source package and its version."""
    additions: tuple[str, ...]
    """The options (Kconfig) that it has beyond Debian's User Mode Linux."""
    offload: str | None
    """The version of OpenVPN's data channel offload; None where the release has no source of it."""


def built_kernel(
    release: str, sources: tuple[AptSource, ...], cache: Path, scratch: Path, report: Report
) -> BuiltKernel:
    """The kernel for a release, from the cache, or built first: 10 minutes or more, and 4 GB while at it.

    Raises UserError with the compiler's last words where it can't be built.
    """
    report(BuildStep("looking for the kernel's source", 0.0))
    wanted = ("linux-source", "user-mode-linux", *_offload_package(release))
    found = versions(release, wanted, sources, scratch / "versions")
    directory = cache / _key(release, found)
    if not (directory / DESCRIPTION).exists():
        _build(release, found, sources, directory, scratch, report)
    return _read(directory)


def _read(directory: Path) -> BuiltKernel:
    facts = json.loads((directory / DESCRIPTION).read_text())
    return BuiltKernel.model_validate({**facts, "directory": directory})


def _key(release: str, found: dict[str, str]) -> str:
    """Names all that a build depends on."""
    packages = ("linux-source", "user-mode-linux", _OFFLOAD)
    all_versions = [f"{name} {found.get(name)}" for name in packages]
    what = "\n".join([*all_versions, kernel_configuration.configuration("")])
    return f"{release}-{found['linux-source']}-{hashlib.sha256(what.encode()).hexdigest()[:12]}"


def _build(
    release: str,
    found: dict[str, str],
    sources: tuple[AptSource, ...],
    directory: Path,
    scratch: Path,
    report: Report,
) -> None:
    tree = scratch / "compilers"
    packages = ("linux-source", "user-mode-linux", *_offload_package(release), *_COMPILERS)
    bootstrap(release, tree, packages, sources, scratch / "apt", part(report, 0.01, 0.06))
    source_package = next(name for name in found if re.fullmatch(r"linux-source-[\d.]+", name))
    source = f"{_SOURCES}/{source_package}"

    report(BuildStep("unpacking the kernel's source", 0.06))
    _in_tree(tree, "tar", "--extract", "--xz", f"--file={source}.tar.xz", f"--directory={_SOURCES}")
    of_debian = image_host.run_in_namespaces(["chroot", str(tree), "linux.uml", "--showconfig"])
    finished = _configure(tree, source, of_debian)

    _compile(tree, source, part(report, 0.1, 0.97))
    report(BuildStep("building modules", 0.97))
    result = tree / "result"
    if offload := _offload_package(release):
        _build_offload(tree, source)
    _in_tree(tree, *_make(source, "modules_install"), "INSTALL_MOD_PATH=/result")
    (modules,) = (result / "lib/modules").iterdir()
    kernel = BuiltKernel(
        directory=directory,
        version=modules.name,
        source=f"{source_package} {found[source_package]}",
        additions=kernel_configuration.added(of_debian, finished),
        offload=found[_OFFLOAD] if offload else None,
    )
    _put_into_cache(kernel, tree / source.lstrip("/") / PROGRAM, modules)


def _offload_package(release: str) -> tuple[str, ...]:
    return (_OFFLOAD,) if release in _RELEASES_WITH_OFFLOAD else ()


def _configure(tree: Path, source: str, of_debian: str) -> str:
    """Writes the configuration and returns what the kernel's own tool made of it."""
    file = tree / source.lstrip("/") / ".config"
    file.write_text(kernel_configuration.configuration(of_debian))
    _in_tree(tree, *_make(source, "olddefconfig"))
    finished = file.read_text()
    if missing := kernel_configuration.missing(finished):
        raise UserError(
            f"the kernel's source has no {', '.join(missing)}",
            advice="Build the image from another Debian release.",
        )
    return finished


def _compile(tree: Path, source: str, report: Report) -> None:
    done = 0

    def show(line: str) -> None:
        nonlocal done
        if not line.startswith("  CC"):
            return
        done += 1
        if done % 20 == 1:
            share = min(done / _COMPILED_FILES, 1.0)
            report(BuildStep(f"compiling the kernel ({line.split()[-1].split('/')[0]})", share))

    parallel = f"--jobs={len(os.sched_getaffinity(0))}"
    _in_tree(tree, *_make(source, PROGRAM, "modules"), parallel, show=show)


def _build_offload(tree: Path, source: str) -> None:
    """As the package's rules for DKMS build it, and put where modules of other sources belong."""
    (place,) = (tree / "usr/src").glob("ovpn-dco-*")
    version = place.name.removeprefix("ovpn-dco-")
    inside = f"{_SOURCES}/{place.name}"
    _in_tree(tree, "make", "-C", inside, "ARCH=um", f"KERNEL_SRC={source}", f"REVISION={version}")
    kernel = (tree / source.lstrip("/") / "include/config/kernel.release").read_text().strip()
    target = tree / "result/lib/modules" / kernel / "updates"
    target.mkdir(parents=True)
    for module in place.rglob("*.ko"):
        shutil.copy2(module, target)


def _make(source: str, *targets: str) -> tuple[str, ...]:
    return ("nice", "make", "-C", source, "ARCH=um", *targets)


def _in_tree(tree: Path, *command: str, show: Callable[[str], None] = lambda _: None) -> None:
    """Runs a command with the tree as its root; raises UserError with its last words."""
    failure = run_watched([*_ENTER, str(tree), *command], show, routine=_STEP_OF_MAKE)
    if failure is not None:
        raise UserError(
            f"the kernel could not be built; the last words of {command[0]} were:\n{failure}",
            advice=image_host.advice_on(failure),
        )


def _put_into_cache(kernel: BuiltKernel, program: Path, modules: Path) -> None:
    """All of it or nothing, whenever this is interrupted; of two builds of one kernel the first stays."""
    kernel.directory.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=kernel.directory.parent, prefix=".building-") as name:
        building = Path(name) / "kernel"
        building.mkdir()
        shutil.copy2(program, building / PROGRAM)
        # Not the links to the sources, which lead nowhere here.
        shutil.copytree(modules, building / MODULES, ignore=shutil.ignore_patterns("build", "source"))
        (building / DESCRIPTION).write_text(kernel.model_dump_json(indent=2) + "\n")
        if not kernel.directory.exists():
            building.rename(kernel.directory)
