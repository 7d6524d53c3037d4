"""Programs that Debian has not got and images may have beside, in locked versions.

They are built on this host as static programs, which run on every release, or come ready made for the Python
of one. What was built or fetched is kept in the cache.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from tunnelbench.errors import UserError
from tunnelbench.lab.bootstrap import BuildStep, Report


@dataclass(frozen=True, slots=True)
class Crate:
    """A program that is a crate of crates.io, built by cargo with the dependencies that its author locked."""

    crate: str
    version: str
    program: str
    """Its file name, under /usr/bin of an image."""

    def runs_on(self, release: str) -> bool:
        """Everywhere."""
        return True

    def put(self, built: Path, root: Path) -> None:
        """Adds what was built to the tree of an image."""
        shutil.copy2(built, root / "usr/bin")

    def built(self, cache: Path, report: Report) -> Path:
        """The static program, from the cache, or built first: a minute or two, and 200 MB while at it.

        Raises UserError where cargo is missing, or with its last words where it fails.
        """
        target = cache / f"{self.crate}-{self.version}" / self.program
        if not target.exists():
            cache.mkdir(parents=True, exist_ok=True)
            report(BuildStep(f"building {self.crate} {self.version}", 0.0))
            with TemporaryDirectory(dir=cache, prefix=".building-") as scratch:
                self._build(Path(scratch))
                target.parent.mkdir(exist_ok=True)
                (Path(scratch) / "bin" / self.program).rename(target)
        return target

    def _build(self, scratch: Path) -> None:
        cargo, rustc = (shutil.which(program) for program in ("cargo", "rustc"))
        if cargo is None or rustc is None:
            raise UserError(
                f"{self.crate} is built from source, and this host has no cargo",
                advice="Install Rust (as root: apt-get install cargo), or build the image without it.",
            )
        about = subprocess.run([rustc, "--version", "--verbose"], capture_output=True, text=True, check=True)
        host = re.search(r"^host: (\S+)$", about.stdout, re.MULTILINE)
        assert host is not None
        command = [
            *(cargo, "install", "--locked", "--root", str(scratch), "--target", host[1]),
            *(f"{self.crate}@{self.version}", "--bin", self.program),
        ]
        # With a target named, the flags are for the program alone, not for what builds it.
        environment = {
            **os.environ,
            "RUSTFLAGS": "-C target-feature=+crt-static",
            "CARGO_TARGET_DIR": str(scratch / "target"),
        }
        finished = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
        )
        if finished.returncode != 0:
            last_words = "\n".join(deque(finished.stderr.splitlines(), maxlen=12))
            raise UserError(f"{self.crate} could not be built; the last words of cargo were:\n{last_words}")


@dataclass(frozen=True, slots=True)
class Wheel:
    """A program in Python that is on PyPI, with a part that was compiled for one version of Python."""

    package: str
    version: str
    program: str
    """Its file name, under /usr/bin of an image."""
    module: str
    """The module whose function `run` the program is."""
    python: str
    """The version of Python, as `3.13`."""
    release: str
    """The Debian release that has it."""
    sha256: str

    def runs_on(self, release: str) -> bool:
        """On the release that has its Python."""
        return release == self.release

    def built(self, cache: Path, report: Report) -> Path:
        """The wheel, from the cache, or fetched by pip from where this host's pip fetches.

        Raises UserError with pip's last words where it fails.
        """
        directory = cache / f"{self.package}-{self.version}-{self.python}"
        if not directory.exists():
            cache.mkdir(parents=True, exist_ok=True)
            report(BuildStep(f"fetching {self.package} {self.version}", 0.0))
            with TemporaryDirectory(dir=cache, prefix=".fetching-") as scratch:
                self._fetch(Path(scratch))
                (Path(scratch) / "wheel").rename(directory)
        (wheel,) = directory.glob("*.whl")
        return wheel

    def put(self, built: Path, root: Path) -> None:
        """Adds the module and its program to the tree of an image."""
        with ZipFile(built) as wheel:
            wheel.extractall(root / "usr/lib/python3/dist-packages")
        program = root / "usr/bin" / self.program
        program.write_text(f"#!/usr/bin/python3\nfrom {self.module} import run\n\nrun()\n")
        program.chmod(0o755)

    def _fetch(self, scratch: Path) -> None:
        requirements = scratch / "requirements.txt"
        requirements.write_text(f"{self.package}=={self.version} --hash=sha256:{self.sha256}\n")
        command = [
            *(sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"),
            *("--only-binary", ":all:", "--python-version", self.python, "--implementation", "cp"),
            *("--platform", "manylinux_2_28_x86_64", "--dest", str(scratch / "wheel")),
            *("--requirement", str(requirements)),
        ]
        finished = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if finished.returncode != 0:
            last_words = "\n".join(deque(finished.stderr.splitlines(), maxlen=6))
            raise UserError(
                f"{self.package} could not be fetched; the last words of pip were:\n{last_words}",
                advice="Build the image without it.",
            )


EXTRAS: Mapping[str, Crate | Wheel] = {
    "boringtun": Crate("boringtun-cli", "0.7.1", "boringtun-cli"),
    "sstp-server": Wheel(
        *("sstp-server", "0.7.2", "sstpd", "sstpd", "3.13", "trixie"),
        sha256="4a8d2cc0cd836fe6b3d329e998a68a0665c65a973c67cff32a68dd22415f0665",
    ),
}
"""By the names that `tunnelbench image build --with` knows."""


def extra_with(program: str, release: str) -> str | None:
    """The name of the extra that brings a program to images of a Debian release; None where none does."""
    fitting = (name for name, extra in EXTRAS.items() if extra.program == program and extra.runs_on(release))
    return next(fitting, None)
