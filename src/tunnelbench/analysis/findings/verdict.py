"""What became of a published claim when it was held against fresh measurements."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Outcome = Literal["holds", "does not hold", "undecided", "not testable here"]


@dataclass(frozen=True)
class Detail:
    """One number behind a verdict, with its 95 % interval."""

    label: str
    """What it is of: a level, a pair of levels, a step."""
    value: float
    low: float | None
    """None where there are too few rounds for an interval."""
    high: float | None
    n: int
    """Rounds that it comes from."""
    published: float | None = None
    """What the paper claims for it, where it gives a number."""


@dataclass(frozen=True)
class Verdict:
    """One finding of a paper, judged."""

    finding: str
    """Its id."""
    says: str
    where: str
    """Section or figure of the paper."""
    outcome: Outcome
    summary: str
    """One sentence with the numbers and intervals; the reason where the finding is not testable."""
    details: tuple[Detail, ...] = ()
    unit: str = ""
    """Of the values in the details: `Mbit/s`, `ms`, `ratio`."""
    test: str | None = None
    """Name of the test behind the outcome."""
    p_value: float | None = None
    rounds_needed: int | None = None
    """Rounds in all that would probably decide it, where it is undecided and that can be said."""
    reason: str | None = None
    """Why it is undecided or not testable here."""
    contradicted: bool = False
    """Whether the paper itself also denies the claim; `note` says where."""
    note: str | None = None


@dataclass(frozen=True)
class Beside:
    """One published number beside ours."""

    where: str
    """Section, figure or table of the paper."""
    metric: str
    """As in the paper; its unit is that of `study.published.Value`."""
    at: str
    """Levels in the paper's words: `vpn ipsec, transport tcp`."""
    published: float
    precision: Literal["exact", "about", "bound"]
    op: str | None
    """Of a bound."""
    note: str | None
    value: float | None
    """Our median over rounds; None where nothing here stands for it, and `reason` says why."""
    low: float | None
    high: float | None
    published_ratio: float | None
    """Published throughput by that of the paper's own plain IP, where it gives that."""
    ratio: float | None
    """Ours by plain IP of the same round, runtime, lab and point."""
    ratio_low: float | None
    ratio_high: float | None
    reason: str | None = None
