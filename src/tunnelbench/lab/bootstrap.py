"""Unpacks Debian packages into a root tree of their own with mmdebstrap, and says how far it has come."""

from __future__ import annotations

import collections
import re
import shutil
import subprocess
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tunnelbench.errors import UserError
from tunnelbench.lab import image_host
from tunnelbench.lab import mirror as apt


@dataclass(frozen=True, slots=True)
class BuildStep:
    """How far a build has come: the step being done, and the share of the work before it (0 to 1)."""

    text: str
    share: float


UNPACKED = "/var/lib/dpkg/unpacked"
"""Where a tree lists what was only unpacked: name, tab and version on each line."""
_UNPACK = f"""
set -e
cd /tmp
apt-get --quiet download $1
apt-get --quiet --yes --no-install-recommends satisfy "$(dpkg-deb --field $1_*.deb Depends)"
dpkg-deb --fsys-tarfile $1_*.deb | tar --extract --keep-directory-symlink --directory /
dpkg-deb --show $1_*.deb >> {UNPACKED}
rm $1_*.deb
""".strip()
"""Run in a tree with a package's name."""

Report = Callable[[BuildStep], None]


def part(report: Report, begin: float, end: float) -> Report:
    """A report for a part of a build, which takes its share of the whole from `begin` to `end`."""
    return lambda step: report(BuildStep(step.text, begin + step.share * (end - begin)))


def archives(release: str, mirror: str | None) -> tuple[apt.AptSource, ...]:
    """Where a release's packages come from on this host; raises UserError where they can't be had."""
    return apt.sources_for(
        release, apt.host_sources(), mirror=mirror, read_release_file=apt.download_release_file
    )


def bootstrap(
    release: str,
    root: Path,
    packages: Iterable[str],
    sources: tuple[apt.AptSource, ...],
    scratch: Path,
    report: Report,
    beside: Iterable[str] = (),
) -> None:
    """Unpacks and sets up `packages` with the base system in `root`.

    Those in `beside` must not be installed together with others of them, though their files don't clash: they
    are unpacked alone, without being set up, and what they depend on is installed.

    Uses `scratch`, which must not be there yet, and removes it. Raises UserError with the builder's last
    words on failure.
    """
    arguments = (
        *("--mode=root", "--format=directory", "--variant=minbase"),
        f"--include={','.join(packages)}",
        # A build that power failure interrupts is thrown away, so there is nothing to save file by file.
        "--dpkgopt=force-unsafe-io",
        *(f"--customize-hook=chroot \"$1\" sh -c '{_UNPACK}' unpack {package}" for package in beside),
    )

    def show(line: str) -> None:
        for beginning, step in _STEPS.items():
            if line.startswith(f"I: {beginning}"):
                report(step)

    with _configured(scratch, sources) as (options, source_list):
        command = ["mmdebstrap", *arguments, *options, release, str(root), str(source_list)]
        failure = run_watched(command, show, temporary=scratch)
    if failure is not None:
        raise UserError(
            f"Debian {release} could not be unpacked; the last words were:\n{failure}",
            advice=image_host.advice_on(failure),
        )


def versions(
    release: str, packages: Sequence[str], sources: tuple[apt.AptSource, ...], scratch: Path
) -> dict[str, str]:
    """The versions in which packages, and what they depend on, would be installed; installs nothing."""
    lines: list[str] = []
    with _configured(scratch, sources) as (options, source_list):
        command = [
            *("mmdebstrap", "--mode=root", "--simulate", "--verbose", "--variant=custom"),
            *(f"--include={','.join(packages)}", *options, release, "/dev/null", str(source_list)),
        ]
        failure = run_watched(command, lines.append, temporary=scratch)
    if failure is not None:
        raise UserError(
            f"Debian {release} has not got {', '.join(packages)}; the last words were:\n{failure}",
            advice=image_host.advice_on(failure),
        )
    found = (re.match(r"Conf (\S+) \((\S+) ", line) for line in lines)
    return {match[1]: match[2] for match in found if match}


def run_watched(
    command: list[str],
    show: Callable[[str], None],
    temporary: Path | None = None,
    routine: re.Pattern[str] | None = None,
) -> str | None:
    """Runs a long command in namespaces of its own and hands over its lines as it prints them.

    Returns its last lines where it fails, but not those that begin like `routine`; None where it does not. If
    this is interrupted, the command is ended at once, with all that it started.
    """
    environment = image_host.environment()
    if temporary is not None:
        environment["TMPDIR"] = str(temporary)
    process = subprocess.Popen(
        image_host.in_namespaces(command),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    assert process.stdout is not None
    last_lines: collections.deque[str] = collections.deque(maxlen=12)
    try:
        for line in process.stdout:
            if routine is None or not routine.match(line):
                last_lines.append(line.rstrip())
            show(line)
    except BaseException:
        process.kill()
        # Its end of the pipe closes when the last process of the build is gone.
        process.stdout.read()
        raise
    finally:
        process.wait()
    return "\n".join(last_lines) if process.returncode != 0 else None


_STEPS = {
    "running apt-get update": BuildStep("reading package lists", 0.02),
    "downloading packages": BuildStep("downloading the base system", 0.09),
    "extracting archives": BuildStep("unpacking the base system", 0.12),
    "installing essential": BuildStep("installing the base system", 0.22),
    "installing remaining": BuildStep("installing the programs", 0.45),
    "cleaning package": BuildStep("cleaning up", 0.95),
}
"""mmdebstrap's messages, and the share of a build's time that passes before each."""


@contextmanager
def _configured(scratch: Path, sources: tuple[apt.AptSource, ...]) -> Generator[tuple[tuple[str, ...], Path]]:
    """Files that only their owner reads, because proxy settings may hold passwords."""
    scratch.mkdir(parents=True)
    configuration, source_list = scratch / "apt.conf", scratch / "debian.sources"
    for file in (configuration, source_list):
        file.touch(mode=0o600)
    configuration.write_text(apt.host_acquire_options(apt.apt_configuration_dump()))
    source_list.write_text("\n".join(source.stanza() for source in sources))
    yield (f"--aptopt={configuration}",), source_list
    shutil.rmtree(scratch, ignore_errors=True)
