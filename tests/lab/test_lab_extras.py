"""Extras: programs built on this host, with a cargo of a few lines in the real one's place."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tunnelbench.errors import UserError
from tunnelbench.lab.bootstrap import BuildStep
from tunnelbench.lab.extras import EXTRAS, Crate, Wheel, extra_with

CRATE = Crate("tunnel-cli", "1.2.3", "tunnel")
CARGO = """\
#!/bin/sh
root=$(echo "$@" | sed 's/.*--root \\([^ ]*\\).*/\\1/')
mkdir -p "$root/bin" && echo "$RUSTFLAGS" "$@" >"$root/bin/tunnel"
"""


def install(directory: Path, name: str, script: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(script)
    (directory / name).chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    directory = tmp_path / "bin"
    install(directory, "rustc", "#!/bin/sh\necho 'host: x86_64-unknown-linux-gnu'\n")
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")
    return directory


def test_a_program_is_built_static_in_its_locked_version_and_kept(programs: Path, tmp_path: Path) -> None:
    install(programs, "cargo", CARGO)
    steps: list[BuildStep] = []
    built = CRATE.built(tmp_path / "cache", steps.append)
    words = built.read_text()
    assert "+crt-static" in words
    assert "install --locked" in words
    assert "tunnel-cli@1.2.3" in words
    install(programs, "cargo", "#!/bin/sh\nexit 1\n")
    assert CRATE.built(tmp_path / "cache", steps.append) == built
    assert [step.text for step in steps] == ["building tunnel-cli 1.2.3"]
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["tunnel-cli-1.2.3"]


def test_a_failed_build_says_why_and_leaves_nothing(programs: Path, tmp_path: Path) -> None:
    install(programs, "cargo", "#!/bin/sh\necho 'error: linker not found' >&2\nexit 101\n")
    with pytest.raises(UserError, match="linker not found"):
        CRATE.built(tmp_path / "cache", lambda _: None)
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_host_without_cargo_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="no cargo") as caught:
        CRATE.built(tmp_path / "cache", lambda _: None)
    assert "apt-get install cargo" in (caught.value.advice or "")


def test_every_extra_is_found_by_its_program() -> None:
    assert {name: extra_with(extra.program, "trixie") for name, extra in EXTRAS.items()} == {
        name: name for name in EXTRAS
    }
    assert extra_with("no-such-program", "trixie") is None


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    path = tmp_path / "tunnel-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        archive.writestr("tunnel/__init__.py", "def run():\n    print('running')\n")
    return path


def test_a_wheel_becomes_a_module_and_a_program_of_the_image(tmp_path: Path, wheel: Path) -> None:
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    extra = Wheel("tunnel", "1.0", "tunneld", "tunnel", "3.13", "trixie", "0" * 64)
    extra.put(wheel, root)
    assert (root / "usr/lib/python3/dist-packages/tunnel/__init__.py").exists()
    program = root / "usr/bin/tunneld"
    assert program.stat().st_mode & 0o777 == 0o755
    environment = {"PYTHONPATH": str(root / "usr/lib/python3/dist-packages")}
    printed = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, check=True
    )
    assert printed.stdout == "running\n"


def test_a_wheel_is_for_the_release_with_its_python_alone() -> None:
    assert EXTRAS["sstp-server"].runs_on("trixie")
    assert not EXTRAS["sstp-server"].runs_on("bookworm")
    assert extra_with("sstpd", "trixie") == "sstp-server"
    assert extra_with("sstpd", "bookworm") is None
