"""The answer, made from the numbers: what is fastest, what it costs, and what can't be said."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tunnelbench.report.content import Content, Estimate, Result, Section
from tunnelbench.report.wording import point_title, runtime_title


@dataclass(frozen=True)
class Comparison:
    """The encrypted tunnels at one point in one runtime."""

    headline: str
    fastest: Result
    slowest: Result | None
    """None where there is only one."""
    rivals: tuple[str, ...]
    """Tunnels whose interval overlaps with that of the fastest."""


def comparisons(content: Content) -> list[Comparison]:
    """What is fastest and slowest, at the headline point of each transport, for each runtime."""
    return [
        _comparison(_headline(section, content.sections), runtime, measured)
        for section in headline_sections(content.sections)
        for runtime in dict.fromkeys(result.runtime for result in section.results)
        if (
            measured := [
                result for result in section.of_runtime(runtime) if result.encrypted and result.throughput
            ]
        )
    ]


def headline_sections(sections: Iterable[Section]) -> list[Section]:
    """One section per transport: the one in which most data arrived per second without a tunnel."""
    best: dict[str, Section] = {}
    for section in sections:
        transport = section.point.transport
        if transport not in best or _plain_speed(section) > _plain_speed(best[transport]):
            best[transport] = section
    return list(best.values())


def _plain_speed(section: Section) -> float:
    speeds = (result.throughput.median for result in section.results if result.throughput)
    return max(speeds, default=0.0)


def _headline(section: Section, sections: Iterable[Section]) -> str:
    """The transport alone where it has but one point."""
    points = [other.point for other in sections if other.point.transport == section.point.transport]
    return section.point.transport.upper() if len(points) == 1 else point_title(section.point)


def _comparison(headline: str, runtime: str, measured: list[Result]) -> Comparison:
    fastest, others = measured[0], measured[1:]
    return Comparison(
        headline=f"{headline}, {runtime_title(runtime)}",
        fastest=fastest,
        slowest=others[-1] if others else None,
        rivals=tuple(other.tunnel for other in others if _overlap(fastest.throughput, other.throughput)),
    )


def _overlap(one: Estimate | None, other: Estimate | None) -> bool:
    if one is None or one.low is None or one.high is None:
        return False
    if other is None or other.low is None or other.high is None:
        return False
    return one.low <= other.high and other.low <= one.high
