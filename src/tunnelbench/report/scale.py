"""In what results of several runtimes are drawn beside each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tunnelbench.report.content import Result
from tunnelbench.report.figures import panel_title
from tunnelbench.study.points import Question

_UNITS: Mapping[str, tuple[str, str]] = {
    "capacity": ("Capacity", "Mbit/s"),
    "throughput": ("Throughput", "Mbit/s"),
    "delay": ("Median one-way delay", "ms"),
    "round trip": ("Median round trip", "ms"),
    "transactions": ("Transactions", "per second"),
}

Values = tuple[float, float | None, float | None]
"""Median, and the ends of its interval."""


@dataclass(frozen=True)
class Scale:
    """Absolute where all ran in one runtime; otherwise in percent of plain IP in the own runtime."""

    is_relative: bool

    @classmethod
    def of(cls, results: Iterable[Result]) -> Scale:
        """The scale on which these can stand beside each other."""
        return cls(len({result.runtime for result in results}) > 1)

    def values(self, result: Result) -> Values | None:
        """What is drawn of a result; None where it has no such number."""
        estimate = result.ranking
        if estimate is None:
            return None
        if not self.is_relative:
            return estimate.median, estimate.low, estimate.high
        if estimate.ratio is None:
            return None
        low, high = estimate.ratio_low, estimate.ratio_high
        return 100 * estimate.ratio, low and 100 * low, high and 100 * high

    def panel(self, result: Result) -> str:
        """The heading of the panel that a result belongs to."""
        return "All runtimes, each by its own plain IP" if self.is_relative else panel_title(result.runtime)

    def title(self, question: Question) -> str:
        """What is drawn."""
        name, unit = _UNITS[question]
        return f"{name} in percent of plain IP" if self.is_relative else f"{name} in {unit}"

    def axis(self, question: Question) -> str:
        """What stands at the axis."""
        return "percent of plain IP" if self.is_relative else _UNITS[question][1]
