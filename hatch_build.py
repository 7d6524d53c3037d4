"""Builds with cargo what is written in Rust, and puts it inside the wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class AgentBuildHook(BuildHookInterface):  # pyright: ignore[reportMissingTypeArgument]
    """Compiles `tbnode`, and a library that kernel nodes load, and ships them in `tunnelbench/bin`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before the wheel is put together; raises RuntimeError where there is no usable cargo."""
        if shutil.which("cargo") is None:
            raise RuntimeError(
                "cargo is missing, and the node agent is written in Rust: install Rust 1.91 or later "
                "(on Debian 12: apt install rustc-web cargo-web)"
            )
        root, target = Path(self.root), host_triple()
        built = Path(os.environ.get("CARGO_TARGET_DIR", root / "target")) / target / "release"
        options = ["--release", "--locked", "--target", target, "--target-dir", str(built.parent.parent)]
        run = partial(subprocess.run, cwd=root, check=True)
        run(["cargo", "build", *options, "--package", "tunnelbench-node"])
        self._ship(built / "tbnode", build_data)
        if target.startswith("x86_64"):
            # Loaded into programs with a C library of their own, so it is linked with none.
            library = ["--package", "tunnelbench-wide-registers", "--crate-type", "cdylib"]
            alone = ["-C", "panic=abort", "-C", "link-arg=-nostdlib"]
            dynamic = {**os.environ, "RUSTFLAGS": "-C target-feature=-crt-static"}
            run(["cargo", "rustc", *options, *library, "--", *alone], env=dynamic)
            self._ship(built / "libtunnelbench_wide_registers.so", build_data)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{target.split('-')[0]}"

    def _ship(self, built: Path, build_data: dict[str, Any]) -> None:
        shipped = Path(self.root) / "src" / "tunnelbench" / "bin" / built.name
        shipped.parent.mkdir(exist_ok=True)
        staged = shipped.with_suffix(".new")
        shutil.copy2(built, staged)
        staged.replace(shipped)
        build_data["artifacts"].append(f"src/tunnelbench/bin/{built.name}")


def host_triple() -> str:
    """The target triple of the installed compiler, such as `x86_64-unknown-linux-gnu`."""
    description = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return next(line.removeprefix("host: ") for line in description.splitlines() if line.startswith("host: "))
