"""Builds the node agent with cargo and puts it inside the wheel."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class AgentBuildHook(BuildHookInterface):  # pyright: ignore[reportMissingTypeArgument]
    """Compiles `tbnode` for this machine and ships it as `tunnelbench/bin/tbnode`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before the wheel is put together; raises RuntimeError where there is no usable cargo."""
        if shutil.which("cargo") is None:
            raise RuntimeError(
                "cargo is missing, and the node agent is written in Rust: install Rust 1.91 or later "
                "(on Debian 12: apt install rustc-web cargo-web)"
            )
        root = Path(self.root)
        target = host_triple()
        target_directory = Path(os.environ.get("CARGO_TARGET_DIR", root / "target"))
        build = ["cargo", "build", "--release", "--locked", "--package", "tunnelbench-node"]
        subprocess.run(
            [*build, "--target", target, "--target-dir", str(target_directory)], cwd=root, check=True
        )
        binary = root / "src" / "tunnelbench" / "bin" / "tbnode"
        binary.parent.mkdir(exist_ok=True)
        staged = binary.with_suffix(".new")
        shutil.copy2(target_directory / target / "release" / "tbnode", staged)
        staged.replace(binary)
        build_data["artifacts"].append("src/tunnelbench/bin/tbnode")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{target.split('-')[0]}"


def host_triple() -> str:
    """The target triple of the installed compiler, such as `x86_64-unknown-linux-gnu`."""
    description = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return next(line.removeprefix("host: ") for line in description.splitlines() if line.startswith("host: "))
