"""Runs the commands of an image build in namespaces of their own, and says what a host lacks for that."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
from pathlib import Path

from tunnelbench.errors import UserError
from tunnelbench.lab.mirror import DEBIAN_KEYRING

# Everything runs in own mount and process namespaces, so nothing stays mounted or alive when this process
# ends, however it ends. An ordinary user gets all of their subordinate ids there, with themselves as root.
_OWN_NAMESPACES = ("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child")
_OWN_USERS = ("--user", "--map-root-user", "--map-auto")

_CAUSES = {
    r"No space left on device|Disk quota exceeded": "The disk is full: free some space (an image "
    "needs 700 MB), or set TUNNELBENCH_CACHE to a directory with room.",
    r"NO_PUBKEY|not signed|couldn't be verified": "This host lacks the archive's key: update the "
    "package debian-archive-keyring.",
    r"is expired|not valid yet": "The mirror's index is out of date: use another with --mirror URL, or "
    'set Acquire::Check-Valid-Until "false" in this host\'s apt configuration.',
    r"Failed to fetch|Could not resolve|Could not connect|Unable to locate": "The mirror failed: "
    "try again, or name another with --mirror URL.",
    r"unshare failed|write to .id_map failed|Operation not permitted": "This host doesn't allow the "
    "namespaces that unpacking packages needs: build as root, or allow unprivileged user namespaces.",
}
"""What the builder's output says about the cause, and what to do."""


def require_builder() -> None:
    """Raises UserError naming the packages or rights that an image build lacks on this host."""
    needed = {"mmdebstrap": "mmdebstrap", "unshare": "util-linux", "setpriv": "util-linux"}
    if os.geteuid() != 0:
        needed |= {"newuidmap": "uidmap", "newgidmap": "uidmap"}
    missing = sorted({package for program, package in needed.items() if shutil.which(program) is None})
    if not DEBIAN_KEYRING.exists():
        missing.append("debian-archive-keyring")
    if missing:
        raise UserError(
            f"building an image needs packages that are not installed: {' '.join(missing)}",
            advice=f"As root: apt-get install --no-install-recommends {' '.join(missing)}",
        )
    if os.geteuid() != 0:
        _require_subordinate_ids()
    run_in_namespaces(["true"])


def discard(directory: Path) -> None:
    """Deletes a tree, whatever ids its files belong to; does nothing if there is none."""
    if not directory.exists():
        return
    try:
        shutil.rmtree(directory)
    except PermissionError:
        # An unfinished tree of an ordinary user holds files of their subordinate ids.
        run_in_namespaces(["rm", "--recursive", "--force", "--one-file-system", "--", str(directory)])


def in_namespaces(command: list[str]) -> list[str]:
    """The command line that runs `command` as root of a tree's files, and ends all it started with itself."""
    own_users = () if os.geteuid() == 0 else _OWN_USERS
    return [*_OWN_NAMESPACES, *own_users, "--", *command]


def environment() -> dict[str, str]:
    """This process's, with the directories of system programs, which an ordinary user's path lacks."""
    path = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    return {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8"}


def run_in_namespaces(command: list[str]) -> str:
    """Runs a short command there and returns what it prints; raises UserError with its complaint."""
    finished = subprocess.run(
        in_namespaces(command), env=environment(), capture_output=True, text=True, errors="replace"
    )
    if finished.returncode != 0:
        words = finished.stderr.strip()
        raise UserError(f"an image can't be built: {command[0]}: {words}", advice=advice_on(words))
    return finished.stdout


def advice_on(output: str) -> str | None:
    """What to do about a failed command, from what it printed."""
    return next((advice for pattern, advice in _CAUSES.items() if re.search(pattern, output)), None)


def _require_subordinate_ids() -> None:
    user = pwd.getpwuid(os.geteuid()).pw_name
    for table in (Path("/etc/subuid"), Path("/etc/subgid")):
        owners = (
            {line.split(":")[0] for line in table.read_text().splitlines()} if table.exists() else set[str]()
        )
        if owners.isdisjoint({user, str(os.geteuid())}):
            raise UserError(
                f"{table} gives {user} no subordinate ids, which unpacking packages needs",
                advice=f"As root: usermod --add-subuids 100000-165535 --add-subgids 100000-165535 {user}",
            )
