"""Which processes a lab consists of, and whether they are gone."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

_HANGS_SECONDS = 20.0


def descendants(process: int) -> list[int]:
    """All living descendants of a process."""
    children = [
        int(child)
        for tasks in Path(f"/proc/{process}/task").glob("*/children")
        for child in tasks.read_text().split()
    ]
    return children + [below for child in children for below in descendants(child)]


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
