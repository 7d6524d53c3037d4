"""Making an image's tree: a script in mmdebstrap's place, and the tidying of what it leaves."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from tunnelbench.errors import UserError
from tunnelbench.lab import image_host, image_tree, mirror
from tunnelbench.lab.bootstrap import BuildStep
from tunnelbench.lab.image_tree import Recipe, complete_archives
from tunnelbench.lab.mirror import AptSource


def debian_like_tree(root: Path, *, merged: bool, kernels: tuple[str, ...] = ("6.1.1",)) -> None:
    """The parts of a fresh Debian tree that make_neutral has to do with."""
    for name in (
        "etc/ssh",
        "etc/apt/apt.conf.d",
        "dev",
        "run/lock",
        "var/log/apt",
        "var/lib/apt/lists",
        "usr/lib",
    ):
        (root / name).mkdir(parents=True)
    if merged:
        (root / "lib").symlink_to("usr/lib")
    else:
        (root / "lib").mkdir()
    for kernel in kernels:
        (root / "usr/lib/uml/modules" / kernel).mkdir(parents=True)
        (root / "usr/lib/uml/modules" / kernel / "modules.dep").write_text("")
    for name in (
        "etc/ssh/ssh_host_rsa_key",
        "etc/ssh/ssh_host_rsa_key.pub",
        "etc/ssh/sshd_config",
        "etc/hostname",
    ):
        (root / name).write_text("host")
    (root / "etc/apt/apt.conf.d/99mmdebstrap").write_text(
        'Acquire::http::Proxy "http://user:password@proxy";'
    )
    (root / "etc/apt/sources.list").write_text("deb http://mirror.example bookworm main")
    (root / "var/log/apt/history.log").write_text("log")
    (root / "etc/hosts").write_text("10.0.0.1 buildhost")
    (root / "etc/resolv.conf").symlink_to("/run/resolver/host.conf")
    program = root / "usr/lib/passwd"
    program.write_text("")
    program.chmod(0o4755)


@pytest.mark.parametrize("merged", [True, False])
def test_a_neutral_tree_holds_nothing_of_the_build(tmp_path: Path, merged: bool) -> None:
    debian_like_tree(tmp_path, merged=merged)
    assert image_tree.make_neutral(tmp_path) == "6.1.1"
    assert [path.name for path in (tmp_path / "etc/ssh").iterdir()] == ["sshd_config"]
    for gone in ("etc/hostname", "etc/apt/apt.conf.d/99mmdebstrap", "etc/apt/sources.list", "var/log/apt"):
        assert not (tmp_path / gone).exists(), gone
    for empty in ("etc/machine-id", "etc/resolv.conf"):
        assert (tmp_path / empty).read_text() == "", empty
        assert not (tmp_path / empty).is_symlink(), empty
    assert "buildhost" not in (tmp_path / "etc/hosts").read_text()
    for directory in ("run", "tmp", "shared", "dev"):
        assert list((tmp_path / directory).iterdir()) == [], directory
    assert stat.S_IMODE((tmp_path / "usr/lib/passwd").stat().st_mode) == 0o755
    modules = tmp_path / "lib/modules/6.1.1"
    assert not modules.readlink().is_absolute(), "must hold wherever the tree is mounted"
    assert (modules / "modules.dep").exists()


@pytest.mark.parametrize("kernels", [(), ("6.1.1", "6.1.2")])
def test_a_tree_needs_exactly_one_kernel(tmp_path: Path, kernels: tuple[str, ...]) -> None:
    debian_like_tree(tmp_path, merged=True, kernels=kernels)
    with pytest.raises(UserError, match="one kernel's modules"):
        image_tree.make_neutral(tmp_path)


def install_program(directory: Path, name: str, text: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(f"#!/bin/sh\n{text}\n")
    (directory / name).chmod(0o755)


def release_file(_address: str, _suite: str) -> str:
    return "Origin: Debian"


@pytest.fixture
def fake_builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Puts a script in mmdebstrap's place and returns the directory to build in."""

    def install(script: str) -> Path:
        install_program(tmp_path / "bin", "mmdebstrap", script)
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
        monkeypatch.setattr(image_host, "in_namespaces", list[str])
        monkeypatch.setattr(image_host, "require_builder", lambda: None)
        monkeypatch.setattr(mirror, "host_sources", lambda: ())
        monkeypatch.setattr(mirror, "download_release_file", release_file)
        (tmp_path / "build").mkdir()
        return tmp_path / "build"

    return install


@pytest.mark.parametrize(
    ("complaint", "advice"),
    [
        ("dpkg: error: failed to write: No space left on device", "disk is full"),
        ("E: Failed to fetch http://mirror.example/x.deb  Connection refused", "--mirror"),
        ("NO_PUBKEY 6ED0E7B82643E131", "debian-archive-keyring"),
        ("E: Release file for http://x is expired (invalid since 3d)", "Check-Valid-Until"),
        ("unshare: unshare failed: Operation not permitted", "as root"),
    ],
)
def test_the_builders_last_words_reach_the_user(
    fake_builder: Callable[[str], Path], complaint: str, advice: str
) -> None:
    directory = fake_builder(f"echo 'I: running apt-get update...' >&2; echo '{complaint}' >&2; exit 25")
    steps: list[BuildStep] = []
    with pytest.raises(UserError) as caught:
        image_tree.assemble(Recipe("bookworm", "http://mirror.example"), directory, directory, steps.append)
    assert complaint in caught.value.message
    assert advice in (caught.value.advice or "")
    assert [step.text for step in steps] == ["asking the archive", "reading package lists"]


def test_an_interrupted_builder_is_gone_at_once(fake_builder: Callable[[str], Path]) -> None:
    script = "echo 'I: running apt-get update...' >&2; sleep 3 2>&-; touch $TMPDIR/../survived"
    directory = fake_builder(script)

    def interrupt(step: BuildStep) -> None:
        if step.text == "reading package lists":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        image_tree.assemble(Recipe("bookworm", "http://mirror.example"), directory, directory, interrupt)
    assert not (directory / "survived").exists()


def test_missing_packages_are_named_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UserError, match="mmdebstrap uidmap") as caught:
        image_host.require_builder()
    assert "apt-get install --no-install-recommends mmdebstrap uidmap" in (caught.value.advice or "")


def test_a_host_that_forbids_namespaces_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_program(
        tmp_path / "bin", "setpriv", "echo 'unshare: unshare failed: Operation not permitted' >&2; exit 1"
    )
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    with pytest.raises(UserError, match="unshare failed") as caught:
        image_host.run_in_namespaces(["true"])
    assert "as root" in (caught.value.advice or "")


def test_an_archive_that_lacks_what_it_lists_is_left_out() -> None:
    main = AptSource(("http://deb.example.org/debian",), ("bullseye",), ("main",))
    security = AptSource(("http://deb.example.org/debian-security/",), ("bullseye-security",), ("main",))
    missing = "E: Failed to fetch http://deb.example.org/debian-security/pool/x_1.deb  404  Not Found [IP]"
    error = UserError(f"Debian bullseye could not be unpacked; the last words were:\n{missing}")
    assert complete_archives((main, security), error) == (main,)
    with pytest.raises(UserError, match="could not be unpacked"):
        complete_archives((security,), error)
    with pytest.raises(UserError, match="no space"):
        complete_archives((main, security), UserError("no space left"))
