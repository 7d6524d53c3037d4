"""The answer, made from the numbers: what is fastest, or adds the least delay, and what can't be said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tunnelbench.report.content import Content, Estimate, Result, Section
from tunnelbench.report.wording import megabits, point_title, runtime_title

LARGEST_LOSS = 0.01
"""Ratio; a tunnel that loses more doesn't carry the rate. The 1 % of published searches for capacity."""


@dataclass(frozen=True)
class Comparison:
    """The encrypted tunnels at one point in one runtime: by delay at a fixed rate, else by throughput."""

    headline: str
    at_fixed_rate: bool
    best: Result
    worst: Result | None
    """None where there is only one."""
    plain: Result | None
    """Plain IP at the same point in the same runtime."""
    rivals: tuple[str, ...]
    """Tunnels whose interval overlaps with that of the best."""
    lossy: tuple[Result, ...]
    """At a fixed rate: those that lose more than LARGEST_LOSS."""

    @property
    def costs(self) -> tuple[Result, ...]:
        """Those whose processor time is to be told: plain IP, best and worst."""
        told = (self.plain, self.best, self.worst)
        return tuple(result for result in told if result is not None and result.machine is not None)


def comparisons(content: Content) -> list[Comparison]:
    """What is best and worst at the headline points, for each runtime."""
    return [
        comparison
        for section in headline_sections(content.sections)
        for comparison in _comparisons(section, _headline(section, content.sections))
    ]


def headline_sections(sections: Iterable[Section]) -> list[Section]:
    """One section for each transport, and for UDP one as fast as possible and one at a fixed rate.

    It is the one in which most data arrived per second without a tunnel, or the one with the highest rate.
    """
    best: dict[tuple[str, bool], Section] = {}
    for section in sections:
        question = (section.point.transport, section.at_fixed_rate)
        if question not in best or _prominence(section) > _prominence(best[question]):
            best[question] = section
    return list(best.values())


def _prominence(section: Section) -> tuple[bool, float]:
    can_be_ranked = any(result.ranking for result in section.results)
    if isinstance(section.point.rate, int):
        return can_be_ranked, section.point.rate
    speeds = (result.throughput.median for result in section.results if result.throughput)
    return can_be_ranked, max(speeds, default=0.0)


def _headline(section: Section, sections: Iterable[Section]) -> str:
    """The transport alone, or with its rate, where it has but one point."""
    point = section.point
    if sum(other.point.transport == point.transport for other in sections) > 1:
        return point_title(point)
    rate = f" at {megabits(point.rate)}" if isinstance(point.rate, int) else ""
    return f"{point.transport.upper()}{rate}"


def _comparisons(section: Section, headline: str) -> Iterator[Comparison]:
    for runtime in dict.fromkeys(result.runtime for result in section.results):
        results = section.of_runtime(runtime)
        encrypted = [result for result in results if result.encrypted and result.ranking]
        if not encrypted:
            continue
        best, *others = encrypted
        yield Comparison(
            headline=f"{headline}, {runtime_title(runtime)}",
            at_fixed_rate=section.at_fixed_rate,
            best=best,
            worst=others[-1] if others else None,
            plain=next((result for result in results if result.treatment == best.treatment.baseline), None),
            rivals=tuple(other.tunnel for other in others if _overlap(best.ranking, other.ranking)),
            lossy=tuple(filter(_loses, encrypted)) if section.at_fixed_rate else (),
        )


def _loses(result: Result) -> bool:
    return "loss" in result.metrics and result.metrics["loss"].median > LARGEST_LOSS


def _overlap(one: Estimate | None, other: Estimate | None) -> bool:
    if one is None or one.low is None or one.high is None:
        return False
    if other is None or other.low is None or other.high is None:
        return False
    return one.low <= other.high and other.low <= one.high
