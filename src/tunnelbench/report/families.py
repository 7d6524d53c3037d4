"""Families of points that differ in the payload's size alone: what papers draw as lines over it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tunnelbench.report.content import Section
from tunnelbench.study.points import Point

FEWEST_SIZES = 3
"""Sizes of payload from which on there is something to draw over them."""


@dataclass(frozen=True)
class Family:
    """Sections whose points differ in the payload's size alone, the smallest first."""

    sections: tuple[Section, ...]

    @property
    def point(self) -> Point:
        """The first of the points."""
        return self.sections[0].point

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bytes of payload."""
        return tuple(section.point.payload_bytes or 0 for section in self.sections)


def families(sections: Iterable[Section]) -> list[Family]:
    """Families of at least FEWEST_SIZES points."""
    found: dict[Point, list[Section]] = {}
    for section in sections:
        if section.point.payload_bytes is not None:
            found.setdefault(section.point.model_copy(update={"payload_bytes": None}), []).append(section)
    return [
        Family(tuple(sorted(members, key=lambda section: section.point.payload_bytes or 0)))
        for members in found.values()
        if len(members) >= FEWEST_SIZES
    ]
