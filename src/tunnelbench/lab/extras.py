"""Programs that Debian has not got and images may have beside: built on this host, in locked versions.

An extra is one static program, so that it runs on every release. What is built is kept in the cache.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tunnelbench.errors import UserError
from tunnelbench.lab.bootstrap import BuildStep, Report


@dataclass(frozen=True, slots=True)
class Crate:
    """A program that is a crate of crates.io, built by cargo with the dependencies that its author locked."""

    crate: str
    version: str
    program: str
    """Its file name, under /usr/bin of an image."""

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


EXTRAS = {"boringtun": Crate("boringtun-cli", "0.7.1", "boringtun-cli")}
"""By the names that `tunnelbench image build --with` knows."""


def extra_with(program: str) -> str | None:
    """The name of the extra that brings a program; None where none does."""
    return next((name for name, extra in EXTRAS.items() if extra.program == program), None)
