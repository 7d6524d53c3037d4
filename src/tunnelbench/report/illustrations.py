"""Which figures a report has, in chapters; their number is bounded, however many points there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from altair.utils.schemapi import debug_mode

from tunnelbench.report.answers import headline_sections
from tunnelbench.report.background_figures import background_figures, loads, loads_title
from tunnelbench.report.beside_figures import beside_figures
from tunnelbench.report.client_figures import client_figures
from tunnelbench.report.compression_figures import compression_figures
from tunnelbench.report.content import Content
from tunnelbench.report.drawing import Drawing
from tunnelbench.report.families import families
from tunnelbench.report.family_figures import family_figures
from tunnelbench.report.point_figures import point_figures
from tunnelbench.report.suite_figures import suite_figures
from tunnelbench.report.why_figures import why_figures
from tunnelbench.report.wording import family_title
from tunnelbench.study.wording import point_title

MOST_POINTS = 8
"""Points that have figures of their own, the headlines; all have tables."""
MOST_FAMILIES = 12
"""Of points that differ in their payload alone; as many that differ in their background alone."""


@dataclass(frozen=True)
class Chapter:
    """Figures that belong together."""

    title: str
    drawings: tuple[Drawing, ...]


@dataclass(frozen=True)
class Illustrations:
    """All figures of a report."""

    of_backgrounds: tuple[Chapter, ...] = ()
    over_clients: tuple[Chapter, ...] = ()
    over_payload: tuple[Chapter, ...] = ()
    of_suites: tuple[Chapter, ...] = ()
    of_points: tuple[Chapter, ...] = ()
    beside: tuple[Drawing, ...] = ()
    """Published values beside ours."""
    why: tuple[Drawing, ...] = ()

    @property
    def chapters(self) -> tuple[Chapter, ...]:
        """Those of measured results."""
        return (
            *self.of_backgrounds,
            *self.over_clients,
            *self.over_payload,
            *self.of_suites,
            *self.of_points,
        )

    @property
    def all(self) -> Iterator[Drawing]:
        """Every drawing, each name once."""
        for chapter in self.chapters:
            yield from chapter.drawings
        yield from self.beside
        yield from self.why


def illustrate(content: Content) -> Illustrations:
    """The figures for which there are numbers, in the forms that published evaluations use."""
    # To check each part of what is drawn here, as tests do, would take longer than to draw it.
    with debug_mode(False):
        return _illustrated(content)


def _illustrated(content: Content) -> Illustrations:
    headlines = headline_sections(content.sections)[:MOST_POINTS]
    lines = islice(families(content.sections), MOST_FAMILIES)
    loaded = islice(loads(content.sections), MOST_FAMILIES)
    return Illustrations(
        of_backgrounds=_chapters((loads_title(some), background_figures(some)) for some in loaded),
        over_clients=_chapters(
            (point_title(section.point), client_figures(section)) for section in headlines
        ),
        over_payload=_chapters((family_title(family.point), family_figures(family)) for family in lines),
        of_suites=_chapters(
            (
                point_title(section.point),
                [*suite_figures(section, content), *compression_figures(section, content)],
            )
            for section in headlines
        ),
        of_points=_chapters((point_title(section.point), point_figures(section)) for section in headlines),
        beside=tuple(beside_figures(content)),
        why=tuple(why_figures(content)),
    )


def _chapters(found: Iterable[tuple[str, Iterable[Drawing]]]) -> tuple[Chapter, ...]:
    chapters = (Chapter(title, tuple(drawings)) for title, drawings in found)
    return tuple(chapter for chapter in chapters if chapter.drawings)
