"""Extras: programs built on this host, with a cargo of a few lines in the real one's place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tunnelbench.errors import UserError
from tunnelbench.lab.bootstrap import BuildStep
from tunnelbench.lab.extras import EXTRAS, Crate, extra_with

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
    assert {name: extra_with(extra.program) for name, extra in EXTRAS.items()} == {
        name: name for name in EXTRAS
    }
    assert extra_with("no-such-program") is None
