"""What this machine has for labs, what it lacks, and what to do about it."""

from __future__ import annotations

import fcntl
import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tunnelbench.errors import UserError
from tunnelbench.lab import image as images
from tunnelbench.lab import image_host, rendezvous
from tunnelbench.lab.agent_program import agent_program
from tunnelbench.lab.kernel import MEMORY_MEGABYTES

_TUN = Path("/dev/net/tun")
_IMAGE_BYTES = 700_000_000
_LAB_BYTES = (2 * MEMORY_MEGABYTES + 250) << 20
_FEWEST_PROCESSORS = 2


class State(StrEnum):
    """How well something is."""

    FINE = "fine"
    LIMITED = "limited"
    """Labs work, but not all of them, or not as well."""
    MISSING = "missing"
    """No lab works without it."""


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    subject: str
    state: State
    text: str
    advice: str | None = None
    """What to do; given for all that is not fine."""


def examine_machine() -> list[Finding]:
    """Looks at everything but what VPNs need of kernels, which takes nodes to find out."""
    return [
        _agent(),
        _namespaces(),
        *_identities(),
        _tun(),
        *_images(),
        _processors(),
        _memory(),
        _disk(),
        _open_labs(),
        _leftovers(),
    ]


def _agent() -> Finding:
    try:
        return Finding("node agent", State.FINE, str(agent_program()))
    except UserError as error:
        return Finding("node agent", State.MISSING, error.message, error.advice)


def _namespaces() -> Finding:
    """Tries them with the system's own tool, so that neither agent nor image is needed to know."""
    as_root = os.geteuid() == 0
    refusal = _refusal(
        *([] if as_root else ["--user", "--map-root-user"]),
        *("--net", "--pid", "--fork", "--mount", "--uts", "--ipc"),
    )
    if refusal is None:
        what = "made as root" if as_root else "made within user namespaces of your own"
        return Finding("namespaces", State.FINE, what)
    return Finding("namespaces", State.MISSING, f"refused: {refusal}", _namespace_advice())


def _refusal(*options: str) -> str | None:
    """What unshare(1) complains of with these options; None where it succeeds."""
    try:
        tried = subprocess.run(["unshare", *options, "true"], capture_output=True, text=True)
    except FileNotFoundError:
        return "unshare, of the package util-linux, is missing"
    return tried.stderr.strip().removesuffix(": Success") if tried.returncode != 0 else None


def _namespace_advice() -> str:
    """The setting that forbids ordinary users to make namespaces, among those known to do so."""
    if os.geteuid() == 0:
        return "This root may not make namespaces: give the container it is in CAP_SYS_ADMIN, or run outside."
    for setting, forbidding, allowing in (
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
        ("user/max_user_namespaces", "0", "10000"),
    ):
        path = Path("/proc/sys", setting)
        if path.exists() and path.read_text().strip() == forbidding:
            return f"Run as root, or as root: sysctl {setting.replace('/', '.')}={allowing}"
    return "Run as root, or have this machine (or container) allow user namespaces."


def _identities() -> Iterator[Finding]:
    """Several users on one node take subordinate ids where the caller is not root."""
    if os.geteuid() == 0:
        return
    refusal = _refusal("--user", "--map-root-user", "--map-auto")
    if refusal is None:
        yield Finding("subordinate ids", State.FINE, "nodes have several users")
        return
    user = pwd.getpwuid(os.getuid()).pw_name
    yield Finding(
        "subordinate ids",
        State.LIMITED,
        f"nodes have one user, so sshd runs in kernel nodes alone: {refusal}",
        "As root: apt-get install uidmap && "
        f"usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}",
    )


def _tun() -> Finding:
    """Opening it says all: whether it is there, ours to open, and driven."""
    consequence = "VPNs in user space run in kernel nodes alone, manifold slower"
    try:
        os.close(os.open(_TUN, os.O_RDWR | os.O_CLOEXEC))
    except FileNotFoundError:
        return Finding(
            "TUN devices", State.LIMITED, f"there is no {_TUN}: {consequence}", "As root: modprobe tun"
        )
    except PermissionError:
        mode = stat.filemode(_TUN.stat().st_mode)
        return Finding(
            "TUN devices",
            State.LIMITED,
            f"you may not open {_TUN} ({mode}): {consequence}",
            f"Run as root, or as root: chmod 0666 {_TUN}, as it is on most machines",
        )
    except OSError as error:
        return Finding(
            "TUN devices", State.LIMITED, f"{_TUN}: {error.strerror}: {consequence}", "As root: modprobe tun"
        )
    return Finding("TUN devices", State.FINE, f"{_TUN} can be opened")


def _images() -> Iterator[Finding]:
    try:
        found = images.list_images()
    except UserError as error:
        yield Finding("images", State.MISSING, error.message, error.advice)
        return
    for image in found:
        text = f"{image.name}: Debian {image.release}, Linux {image.kernel_version}"
        if os.geteuid() in (0, image.root.stat().st_uid):
            yield Finding("image", State.FINE, text)
        else:
            yield Finding(
                "image",
                State.LIMITED,
                f"{text}, of another user",
                "Set TUNNELBENCH_CACHE to a directory of yours: tunnelbench image build",
            )
    if not any(image.name == images.DEFAULT_IMAGE for image in found):
        yield _no_image()


def _no_image() -> Finding:
    text = f"{images.DEFAULT_IMAGE} is not built"
    command = f"tunnelbench image build {images.DEFAULT_IMAGE}"
    try:
        image_host.require_builder()
    except UserError as error:
        return Finding("image", State.MISSING, f"{text}; {error.message}", f"{error.advice}; then: {command}")
    return Finding("image", State.MISSING, text, f"Build it (half a minute): {command}")


def _processors() -> Finding:
    count = len(os.sched_getaffinity(0))
    if count < _FEWEST_PROCESSORS:
        return Finding(
            "processors",
            State.LIMITED,
            "one, which all nodes share",
            "Use a machine with two or more: senders disturb gateways less there.",
        )
    return Finding("processors", State.FINE, str(count))


def _memory() -> Finding:
    lines = Path("/proc/meminfo").read_text().splitlines()
    available = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
    text = f"{available >> 20} MB available"
    if available < _LAB_BYTES:
        return Finding(
            "memory",
            State.LIMITED,
            f"{text}; a lab with two kernels takes {_LAB_BYTES >> 20} MB",
            "End other programs, or use a machine with more memory.",
        )
    return Finding("memory", State.FINE, text)


def _disk() -> Finding:
    cache = images.cache_directory()
    existing = next(path for path in (cache, *cache.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    text = f"{free // 1_000_000} MB free in {existing}"
    if free < _IMAGE_BYTES:
        return Finding(
            "disk",
            State.LIMITED,
            f"{text}; building an image takes {_IMAGE_BYTES // 1_000_000} MB",
            "Free some space, or set TUNNELBENCH_CACHE to a directory with room.",
        )
    return Finding("disk", State.FINE, text)


def _open_labs() -> Finding:
    found = [name for name, listening in rendezvous.labs_by_state().items() if listening]
    if found:
        return Finding(
            "open labs",
            State.LIMITED,
            f"{', '.join(found)}: they share this machine with what is measured",
            "Take down what you don't need: tunnelbench lab down --name NAME",
        )
    return Finding("open labs", State.FINE, "none")


def _leftovers() -> Finding:
    """What killed runs left: sockets and half-built images go by themselves, agents should not be there."""
    labs = rendezvous.labs_by_state()
    swept = [f"the socket of lab {name}" for name, listening in labs.items() if not listening]
    swept += [f"half-built image {path.name}" for path in _abandoned_builds()]
    agents = [str(process) for process in _orphaned_agents()]
    if agents:
        return Finding(
            "leftovers",
            State.LIMITED,
            f"agents whose owner is gone: processes {', '.join(agents)}",
            f"End them: kill {' '.join(agents)}",
        )
    if swept:
        return Finding(
            "leftovers",
            State.LIMITED,
            ", ".join(swept),
            "The next tunnelbench lab list, or image build of that name, sweeps it up.",
        )
    return Finding("leftovers", State.FINE, "none")


def _abandoned_builds() -> Iterator[Path]:
    """Half-built images that no process holds the lock of."""
    for path in sorted((images.cache_directory() / "images").glob(".*.building")):
        lock = path.with_name(path.name.removesuffix("building") + "lock")
        if not lock.exists():
            yield path
            continue
        with lock.open() as opened:
            try:
                fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield path


def _orphaned_agents() -> Iterator[int]:
    """Agents of this user that were handed to process 1, their owner being gone, and live on all the same."""
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if directory.stat().st_uid != os.getuid():
                continue
            name, _, rest = (directory / "stat").read_text().partition("(")[2].rpartition(")")
            state, parent = rest.split()[:2]
        except OSError:
            continue
        if name == "tbnode" and parent == "1" and state != "Z":
            yield int(directory.name)
