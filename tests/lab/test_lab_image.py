"""The image cache with a stand-in for mmdebstrap, the tidying of a tree, and the image really built."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tunnelbench.commands.image import image_app
from tunnelbench.errors import UserError
from tunnelbench.lab import image as images
from tunnelbench.lab import image_host
from tunnelbench.lab.bootstrap import BuildStep, Report
from tunnelbench.lab.image_tree import Recipe, TreeDescription
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.topology import TOPOLOGIES

DESCRIPTION = TreeDescription(
    suites=("bookworm", "bookworm-security"),
    kernel="/usr/bin/linux.uml",
    kernel_version="6.1.1",
    modules_version="6.1.1",
    packages={"openvpn": "2.6.14-0+deb12u2", "openssh-server": "1:9.2p1-2"},
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; trees in it are deleted without the namespaces that real ones need."""
    monkeypatch.setenv("TUNNELBENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(image_host, "in_namespaces", list[str])
    return tmp_path / "cache"


def assembler(content: str = "new") -> images.Assemble:
    """Makes a tree of one file in place of Debian."""

    def assemble(_recipe: Recipe, directory: Path, _cache: Path, report: Report) -> TreeDescription:
        report(BuildStep("unpacking", 0.5))
        (directory / "root").mkdir()
        (directory / "root" / "content").write_text(content)
        return DESCRIPTION

    return assemble


def test_a_built_image_is_found_with_what_is_in_it(cache: Path) -> None:
    steps: list[BuildStep] = []
    built = images.build("bookworm", Recipe("bookworm"), progress=steps.append, assemble=assembler())
    assert images.find("bookworm") == built
    assert images.list_images() == [built]
    assert built.root == cache / "images" / "bookworm" / "root"
    assert (built.root / "content").read_text() == "new"
    assert built.packages == DESCRIPTION.packages
    assert [step.share for step in steps] == [0.5, 1.0]


@pytest.mark.usefixtures("cache")
def test_a_release_is_that_of_what_is_built_or_else_the_name() -> None:
    assert images.release_of("trixie") == "trixie"
    images.build("trixie", Recipe("bookworm"), assemble=assembler())
    assert images.release_of("trixie") == "bookworm"
    assert images.release_of("mine") is None


def test_images_can_be_moved_with_the_cache(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images.build("bookworm", Recipe("bookworm"), assemble=assembler())
    cache.rename(tmp_path / "elsewhere")
    monkeypatch.setenv("TUNNELBENCH_CACHE", str(tmp_path / "elsewhere"))
    assert (images.find("bookworm").root / "content").exists()


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("trixie", "tunnelbench image build trixie"),
        ("mine", "tunnelbench image build mine --release bookworm"),
    ],
)
def test_a_missing_image_comes_with_the_command_that_builds_it(name: str, command: str) -> None:
    for look_up in (images.find, images.ensure) if name == "mine" else (images.find,):
        with pytest.raises(UserError) as caught:
            look_up(name)
        assert str(caught.value).endswith(command)


def test_a_failed_build_leaves_no_image_and_no_files(cache: Path) -> None:
    def fail(_recipe: Recipe, directory: Path, _cache: Path, _report: Report) -> TreeDescription:
        (directory / "root").mkdir()
        raise UserError("the mirror failed")

    with pytest.raises(UserError, match="the mirror failed"):
        images.build("bookworm", Recipe("bookworm"), assemble=fail)
    assert images.list_images() == []
    assert [path.name for path in (cache / "images").iterdir()] == [".bookworm.lock"]


def test_a_failed_rebuild_keeps_the_older_image(cache: Path) -> None:
    old = images.build("bookworm", Recipe("bookworm"), assemble=assembler("old"))

    def interrupted(_recipe: Recipe, directory: Path, _cache: Path, _report: Report) -> TreeDescription:
        (directory / "root").mkdir()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        images.build("bookworm", Recipe("bookworm"), assemble=interrupted)
    assert images.find("bookworm") == old
    assert (old.root / "content").read_text() == "old"
    assert len(list((cache / "images").iterdir())) == 2


def test_a_rebuild_replaces_the_older_image(cache: Path) -> None:
    old = images.build("bookworm", Recipe("bookworm"), assemble=assembler("old"))
    new = images.build("bookworm", Recipe("bookworm"), assemble=assembler("new"))
    assert new.built_at > old.built_at
    assert (new.root / "content").read_text() == "new"
    assert {path.name for path in (cache / "images").iterdir()} == {"bookworm", ".bookworm.lock"}


KILLED_BUILD = """
import sys, time
from pathlib import Path
from tunnelbench.lab import image, image_host
from tunnelbench.lab.image_tree import Recipe

def hang(recipe, directory, cache, report):
    (directory / "root").mkdir()
    (directory / "image.json").write_text("{}")
    print("building", flush=True)
    time.sleep(60)

image_host.in_namespaces = list
image.build("bookworm", Recipe("bookworm"), assemble=hang)
"""


def test_a_killed_build_is_no_image_and_the_next_build_removes_it(cache: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", KILLED_BUILD], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "building\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert (cache / "images" / ".bookworm.building").exists(), "the kill came too late to show anything"
    assert images.list_images() == []
    with pytest.raises(UserError, match="not built"):
        images.find("bookworm")
    images.build("bookworm", Recipe("bookworm"), assemble=assembler())
    assert {path.name for path in (cache / "images").iterdir()} == {"bookworm", ".bookworm.lock"}


@pytest.mark.usefixtures("cache")
def test_two_builds_of_one_image_make_it_once() -> None:
    started, finish = threading.Event(), threading.Event()

    def slow(recipe: Recipe, directory: Path, cache: Path, report: Report) -> TreeDescription:
        started.set()
        assert finish.wait(30)
        return assembler("first")(recipe, directory, cache, report)

    waiting = threading.Event()

    def show(step: BuildStep) -> None:
        if step.text.startswith("waiting"):
            waiting.set()

    results: list[images.Image] = []
    first = threading.Thread(
        target=lambda: results.append(images.build("bookworm", Recipe("bookworm"), assemble=slow))
    )
    second = threading.Thread(
        target=lambda: results.append(
            images.build("bookworm", Recipe("bookworm"), progress=show, assemble=assembler("second"))
        )
    )
    first.start()
    assert started.wait(30)
    second.start()
    assert waiting.wait(30)
    finish.set()
    first.join(30)
    second.join(30)
    assert results[0] == results[1]
    assert (images.find("bookworm").root / "content").read_text() == "first"


def test_an_image_is_not_removed_under_a_build(cache: Path) -> None:
    images.build("bookworm", Recipe("bookworm"), assemble=assembler())
    with (cache / "images" / ".bookworm.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(UserError, match="being built"):
            images.remove("bookworm")
    images.remove("bookworm")
    assert images.list_images() == []
    with pytest.raises(UserError, match="no image bookworm"):
        images.remove("bookworm")


def test_a_damaged_description_is_named_with_what_to_do(cache: Path) -> None:
    images.build("bookworm", Recipe("bookworm"), assemble=assembler())
    (cache / "images" / "bookworm" / "image.json").write_text('{"name": ')
    with pytest.raises(UserError, match=r"image\.json is damaged") as caught:
        images.find("bookworm")
    assert caught.value.advice == "Build the image again: tunnelbench image build bookworm"


@pytest.mark.usefixtures("cache")
@pytest.mark.parametrize("name", ["", "..", "../x", ".hidden", "a/b", "Big", "-x", "a" * 65])
def test_names_that_could_leave_the_cache_are_refused(name: str) -> None:
    for look_up in (images.find, images.ensure, images.remove):
        with pytest.raises(UserError, match="can't name an image"):
            look_up(name)
    with pytest.raises(UserError, match="can't name an image"):
        images.build(name, Recipe("bookworm"), assemble=assembler())


@pytest.mark.usefixtures("cache")
def test_unknown_releases_are_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="unknown Debian release: hardy") as caught:
        images.build("mine", Recipe("hardy"), assemble=assembler())
    assert caught.value.advice is not None
    assert "bookworm" in caught.value.advice


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TUNNELBENCH_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UserError, match="Not a directory") as caught:
        images.build("bookworm", Recipe("bookworm"), assemble=assembler())
    assert "TUNNELBENCH_CACHE" in (caught.value.advice or "")


def test_the_cache_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    monkeypatch.delenv("TUNNELBENCH_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert images.cache_directory() == Path("/home/someone/.cache/tunnelbench")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert images.cache_directory() == Path("/home/someone/.cache/tunnelbench")
    monkeypatch.setenv("XDG_CACHE_HOME", "/var/cache/someone")
    assert images.cache_directory() == Path("/var/cache/someone/tunnelbench")
    monkeypatch.setenv("TUNNELBENCH_CACHE", "/scratch")
    assert images.cache_directory() == Path("/scratch")


@pytest.mark.usefixtures("cache")
def test_the_commands_list_and_remove() -> None:
    run = CliRunner().invoke
    assert "tunnelbench image build" in run(image_app, ["list"]).output
    image = images.build("bookworm", Recipe("bookworm"), assemble=assembler())
    table = run(image_app, ["list"]).output
    assert "6.1.1" in table
    assert "2.6.14" in table
    (described,) = json.loads(run(image_app, ["list", "--json"]).output)
    assert described["directory"] == str(image.directory)
    assert described["packages"] == DESCRIPTION.packages
    assert run(image_app, ["build", "--if-missing"]).exit_code == 0
    assert images.find("bookworm") == image
    assert run(image_app, ["remove", "bookworm"]).exit_code == 0
    assert images.list_images() == []


@pytest.mark.lab
async def test_the_real_image_boots_with_its_programs_and_modules() -> None:
    image = images.ensure()
    plan = LabPlan(TOPOLOGIES["host-to-host"], image, {"host1": Runtime.KERNEL})
    async with Lab(plan) as lab:
        node = lab.nodes["host1"]
        assert (await node.identify()).kernel == image.kernel_version
        openvpn = await node.run("openvpn", "--version", check=False)
        assert openvpn.text.startswith(f"OpenVPN {upstream(image, 'openvpn')}")
        iperf3 = await node.run("iperf3", "--version")
        assert iperf3.text.startswith(f"iperf {upstream(image, 'iperf3')}")
        await node.run("modprobe", "esp4")


@pytest.mark.lab
def test_the_real_image_is_neutral_and_its_owners_alone() -> None:
    root = images.ensure().root
    for pattern in (
        "etc/ssh/ssh_host_*",
        "dev/*",
        "run/*",
        "tmp/*",
        "var/lib/apt/lists/*",
        "etc/apt/sources.list",
    ):
        assert list(root.glob(pattern)) == [], pattern
    assert (root / "etc/machine-id").read_text() == ""
    files = [Path(directory, name) for directory, _, names in os.walk(root) for name in names]
    assert len(files) > 5000
    states = [(path, path.lstat()) for path in files]
    assert [path for path, state in states if state.st_uid != root.stat().st_uid] == []
    privileged = stat.S_ISUID | stat.S_ISGID
    assert [
        path for path, state in states if stat.S_ISREG(state.st_mode) and state.st_mode & privileged
    ] == []


def upstream(image: images.Image, package: str) -> str:
    return image.packages[package].rpartition("-")[0]
