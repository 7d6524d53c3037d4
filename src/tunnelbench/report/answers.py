"""The answer, made from the numbers: what is fastest, or adds the least delay, and what can't be said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tunnelbench.report.content import Content, Result, Section
from tunnelbench.report.wording import runtime_title
from tunnelbench.study.points import Question
from tunnelbench.study.quantity import CAPACITY, MAXIMUM
from tunnelbench.study.wording import pace, point_title

LARGEST_LOSS = 0.01
"""Ratio; a tunnel that loses more doesn't carry the rate. The 1 % of published searches for capacity."""


@dataclass(frozen=True)
class Comparison:
    """The encrypted tunnels at one point in one runtime, compared by what is asked there."""

    headline: str
    question: Question
    best: Result
    worst: Result | None
    """None where there is only one."""
    plain: Result | None
    """Plain IP at the same point in the same runtime."""
    rivals: tuple[str, ...]
    """Tunnels that can't be told apart from the best: those of its tier."""
    lossy: tuple[Result, ...]
    """At a fixed rate: those that lose more than LARGEST_LOSS."""
    alone: tuple[Result, ...] = ()
    """Beside a background: plain IP, best and worst with nothing beside them."""

    @property
    def costs(self) -> tuple[Result, ...]:
        """Those whose processor time is to be told."""
        return tuple(result for result in self._told if result.machine is not None)

    @property
    def slowed(self) -> tuple[Result, ...]:
        """Those of which is known what their background adds to them."""
        return tuple(result for result in self._told if result.added is not None)

    @property
    def _told(self) -> tuple[Result, ...]:
        return tuple(result for result in (self.plain, self.best, self.worst) if result is not None)


def comparisons(content: Content) -> list[Comparison]:
    """What is best and worst at the headline points, for each runtime."""
    return [
        comparison
        for section in headline_sections(content.sections)
        for comparison in _comparisons(section, content.sections)
    ]


def headline_sections(sections: Iterable[Section]) -> list[Section]:
    """One section for each transport, profile, background and question.

    For UDP one at a fixed rate, and one as fast as possible. It is the one with the highest rate, or in which
    most arrived per second without a tunnel.
    """
    best: dict[tuple[str, str, str, str], Section] = {}
    for section in sections:
        point = section.point
        kind = (point.transport, point.profile, point.background, point.question)
        if kind not in best or _prominence(section) > _prominence(best[kind]):
            best[kind] = section
    return list(best.values())


def _prominence(section: Section) -> tuple[bool, float]:
    can_be_ranked = any(result.ranking for result in section.results)
    point = section.point
    if point.rate not in (None, MAXIMUM, CAPACITY):
        return can_be_ranked, float(point.rate.bits_per_second(point.payload_bytes or 1) or 0)
    ranks = (result.ranking.median for result in section.results if result.ranking)
    return can_be_ranked, max(ranks, default=0.0)


def _headline(section: Section, sections: Iterable[Section]) -> str:
    """The transport alone, or with its rate, where it has but one point, and that of the usual profile."""
    point = section.point
    is_alone = sum(other.point.transport == point.transport for other in sections) == 1
    if not is_alone or point.profile != "constant":
        return point_title(point)
    return " ".join(
        [point.transport.upper(), *pace(point)] if section.at_fixed_rate else [point.transport.upper()]
    )


def _comparisons(section: Section, sections: Sequence[Section]) -> Iterator[Comparison]:
    headline = _headline(section, sections)
    for runtime in dict.fromkeys(result.runtime for result in section.results):
        results = section.of_runtime(runtime)
        encrypted = [result for result in results if result.encrypted and result.ranking]
        if not encrypted:
            continue
        best, *others = encrypted
        worst = others[-1] if others else None
        plain = next((result for result in results if result.treatment == best.treatment.baseline), None)
        yield Comparison(
            headline=f"{headline}, {runtime_title(runtime)}",
            question=section.point.question,
            best=best,
            worst=worst,
            plain=plain,
            rivals=tuple(other.tunnel for other in others if _is_of_a_tier(best, other)),
            lossy=tuple(filter(_loses, encrypted)) if section.at_fixed_rate else (),
            alone=tuple(other for one in (plain, best, worst) for other in _alone(one, sections)),
        )


def _alone(loaded: Result | None, sections: Iterable[Section]) -> Iterator[Result]:
    """The same without its background, where it has one and both were measured."""
    if loaded is None or loaded.point.background == "none":
        return
    place = (loaded.treatment, loaded.runtime)
    for section in sections:
        if section.point == loaded.point.without_background:
            results = (result for result in section.results if result.ranking)
            yield from (result for result in results if (result.treatment, result.runtime) == place)


def _loses(result: Result) -> bool:
    return "loss" in result.metrics and result.metrics["loss"].median > LARGEST_LOSS


def _is_of_a_tier(one: Result, other: Result) -> bool:
    return one.tier is not None and one.tier == other.tier
