"""Where open labs are found: a UNIX socket for each in a directory that is the user's alone.

A lab lives as long as the process that listens on its socket. A socket on which nobody listens is what a
killed one left, and goes as soon as anybody looks.
"""

from __future__ import annotations

import fcntl
import os
import re
import socket
import stat
import struct
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tunnelbench.errors import UserError

_BACKLOG = 64
_SUFFIX = ".sock"
_LONGEST_PATH = 107


def runtime_directory() -> Path:
    """Where sockets are: in XDG_RUNTIME_DIR (XDG base directories) if that is ours, else in /tmp."""
    given = Path(os.environ.get("XDG_RUNTIME_DIR", ""))
    if given.is_absolute() and given.is_dir() and given.stat().st_uid == os.getuid():
        return given / "tunnelbench"
    return Path(f"/tmp/tunnelbench-{os.getuid()}")


def claim(name: str) -> socket.socket:
    """A listening socket for a new lab; raises UserError where one of that name is open."""
    path = _path(name)
    with _locked_directory():
        if _connect(path) is not None:
            raise UserError(
                f"lab {name} is up already",
                advice=f"Take it down (tunnelbench lab down --name {name}) or choose another --name.",
            )
        path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listener.bind(str(path))
        listener.listen(_BACKLOG)
        return listener


def release(name: str) -> None:
    """Takes a lab's socket away, and the directory with the last one."""
    if not runtime_directory().exists():
        return
    with _locked_directory() as directory:
        _path(name).unlink(missing_ok=True)
        if not any(directory.iterdir()):
            directory.rmdir()


def connect(name: str) -> socket.socket:
    """A connection to an open lab; raises UserError where there is none of that name."""
    others = open_labs()
    stream = _connect(_path(name)) if name in others else None
    if stream is None:
        known = f"Labs that are up: {', '.join(others)}; name one with --name. " if others else ""
        raise UserError(
            f"no lab named {name} is up", advice=f"{known}Bring one up: tunnelbench lab up --name {name}"
        )
    return stream


def process_behind(stream: socket.socket) -> int:
    """The process that listens at the other end of a connection to a lab (SO_PEERCRED, unix(7))."""
    credentials = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    return struct.unpack("3i", credentials)[0]


def open_labs() -> list[str]:
    """The names of all open labs; sweeps up what killed ones left."""
    if not runtime_directory().exists():
        return []
    with _locked_directory() as directory:
        found = labs_by_state()
        for name, listening in found.items():
            if not listening:
                _path(name).unlink(missing_ok=True)
        if not any(directory.iterdir()):
            directory.rmdir()
    return [name for name, listening in found.items() if listening]


def labs_by_state() -> dict[str, bool]:
    """Every lab that has a socket, and whether anybody listens on it; sweeps nothing up."""
    found: dict[str, bool] = {}
    for path in sorted(runtime_directory().glob(f"*{_SUFFIX}")):
        stream = _connect(path)
        found[path.name.removesuffix(_SUFFIX)] = stream is not None
        if stream is not None:
            stream.close()
    return found


def _path(name: str) -> Path:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}", name):
        raise UserError(
            f"{name!r} can't name a lab",
            advice="Use at most 40 letters, digits, dots, hyphens and underscores, letters or digits first.",
        )
    path = runtime_directory() / f"{name}{_SUFFIX}"
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise UserError(
            f"{path} is too long for a socket's path",
            advice="Set XDG_RUNTIME_DIR to a shorter directory, or choose a shorter --name.",
        )
    return path


def _connect(path: Path) -> socket.socket | None:
    stream = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        stream.connect(str(path))
    except (ConnectionRefusedError, FileNotFoundError):
        stream.close()
        return None
    return stream


@contextmanager
def _locked_directory() -> Generator[Path]:
    """The directory, made where it is missing, with all other processes kept out of it."""
    directory = runtime_directory()
    while True:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_owner(directory)
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Whoever held the lock may have removed the directory, being done with it.
            if directory.exists() and os.path.samestat(os.fstat(descriptor), directory.stat()):
                yield directory
                return
        finally:
            os.close(descriptor)


def _check_owner(directory: Path) -> None:
    """Nobody else may have put the directory there, or be able to put anything into it."""
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise UserError(
            f"{directory} is not a directory of yours alone",
            advice="Remove it, or set XDG_RUNTIME_DIR to a directory that only you can use.",
        )
