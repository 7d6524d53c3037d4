"""The files that a study takes payload from."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tunnelbench.study.fields import CONTENTS
from tunnelbench.study.locator import KeyPath
from tunnelbench.study.model import Study

LARGEST_CONTENT = 64 * 1024
"""Bytes of one pattern of the engine, sent over and over; no compression in a tunnel looks back further."""


def read_contents(study: Study, folder: Path) -> Mapping[str, bytes]:
    """The bytes of each file that the study names as payload; `folder` is that of the study."""
    names = [content for content in study.factors.content if content not in CONTENTS]
    return {name: (folder / name).read_bytes() for name in names}


def wrong_contents(study: Study, folder: Path) -> list[tuple[KeyPath, str]]:
    """Files that can't serve as payload, and why."""
    found: list[tuple[KeyPath, str]] = []
    for index, content in enumerate(study.factors.content):
        reason = None if content in CONTENTS else _reason_against(folder / content)
        if reason is not None:
            found.append((("factors", "content", index), f"{folder / content} can't be payload: {reason}"))
    return found


def _reason_against(path: Path) -> str | None:
    try:
        size = path.stat().st_size if path.is_file() else None
    except OSError as error:
        return error.strerror
    if size is None:
        return "there is no such file"
    if not 0 < size <= LARGEST_CONTENT:
        return f"it has {size} bytes, and payload is made of 1 to {LARGEST_CONTENT}, over and over"
    return None
