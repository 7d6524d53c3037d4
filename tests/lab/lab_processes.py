"""Which processes a lab consists of, and whether they are gone."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable
from pathlib import Path

_HANGS_SECONDS = 60.0


def descendants(process: int) -> list[int]:
    """All living descendants of a process."""
    children: list[int] = []
    for tasks in Path(f"/proc/{process}/task").glob("*/children"):
        # Processes end while they are looked at.
        with contextlib.suppress(OSError):
            children += [int(child) for child in tasks.read_text().split()]
    return children + [below for child in children for below in descendants(child)]


def command_line(process: int) -> list[str]:
    """The program that a process runs, with its arguments; nothing for one that has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_text().split("\0")[:-1]
    except OSError:
        return []


def survivors(processes: Iterable[int]) -> list[int]:
    """Those that still run after ample time."""
    remaining = list(processes)
    deadline = time.monotonic() + _HANGS_SECONDS
    while remaining and time.monotonic() < deadline:
        remaining = [process for process in remaining if runs(process)]
        time.sleep(0.02)
    return remaining


def runs(process: int) -> bool:
    """Whether a process runs; one that is dead and waits for its parent to notice does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
