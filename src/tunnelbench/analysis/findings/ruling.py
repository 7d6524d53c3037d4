"""How the parts of a claim make a verdict.

A claim is a conjunction: "3DES is slower than DES and than AES" holds if every part does. Each part is tested
at 5 %, and all must pass; that needs no correction (the intersection-union test of R. L. Berger,
Technometrics 24, 1982). One part that is shown to be wrong denies the whole; there are as many chances to
find one as parts, so those tests are corrected by Holm's method. What is neither is undecided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tunnelbench.analysis.findings.verdict import Detail, Outcome
from tunnelbench.analysis.holm import holm
from tunnelbench.analysis.paired import Difference
from tunnelbench.analysis.power import rounds_needed

SIGNIFICANCE = 0.05
NEGLIGIBLE = 0.02
"""Ratio less one; what is shown to be better by less than that is not better in any way that matters."""


@dataclass(frozen=True)
class Part:
    """One part of a claim."""

    says: str
    """What was found, with its numbers."""
    p_support: float
    """Two-sided; small where it is shown to be as claimed."""
    p_denial: float
    """Two-sided, before correction; small where it is shown not to be."""
    rounds_needed: int | None
    """Rounds in all that would probably decide it; None where that can't be said."""
    size_missed: bool = False
    """Whether the direction is as claimed and the size is shown to be less."""

    @property
    def is_supported(self) -> bool:
        return self.p_support <= SIGNIFICANCE and not self.size_missed


@dataclass(frozen=True)
class Ruling:
    """What became of a claim; `verdict.Verdict` without what is the finding's own."""

    outcome: Outcome
    summary: str
    details: tuple[Detail, ...]
    unit: str
    test: str | None = None
    p_value: float | None = None
    rounds_needed: int | None = None
    reason: str | None = None


def ruling(
    parts: Sequence[Part],
    details: tuple[Detail, ...],
    unit: str,
    test: str,
    missing: Sequence[str] = (),
    remark: str = "",
) -> Ruling:
    """The verdict on a conjunction of parts; `missing` are parts for which there are no measurements."""
    denials = holm([part.p_denial for part in parts])
    wrong = {
        part: float(p_value)
        for part, p_value in zip(parts, denials, strict=True)
        if p_value <= SIGNIFICANCE and not part.is_supported
    }
    open_parts = [part for part in parts if not part.is_supported]
    lacking = f"There are no measurements of {', '.join(missing)}." if missing else ""
    if wrong:
        told = _told(list(wrong), remark)
        return Ruling("does not hold", told, details, unit, test, min(wrong.values()))
    p_value = max(part.p_support for part in parts)
    if open_parts:
        needed = [part.rounds_needed for part in open_parts]
        rounds = None if None in needed else max(one for one in needed if one is not None)
        reason = f"Undecided by the rounds so far. {lacking}".strip()
        return Ruling("undecided", _told(open_parts, remark), details, unit, test, p_value, rounds, reason)
    if missing:
        return Ruling("undecided", _told(parts, remark), details, unit, test, p_value, None, lacking)
    return Ruling("holds", _told(parts, remark), details, unit, test, p_value)


def ordered(found: Difference, says: str, claimed: float | None = None) -> Part:
    """The claim that a difference is above zero, and that the ratio is as large as claimed.

    Shown: the interval is above 1, and reaches what is claimed or lies beyond it. Denied: the interval is not
    above 1 and ends below what is not negligible, or it ends below what is claimed.
    """
    interval = found.interval()
    p_value = found.p_value
    if interval is None or p_value is None:
        return Part(says, 1.0, 1.0, None)
    edge = math.log1p(NEGLIGIBLE)
    p_support = p_value if found.mean > 0 else 1.0
    p_denial = _two_sided(1 - found.p_above(edge)) if found.mean < edge else 1.0
    if claimed is not None and interval[1] < claimed:
        p_denial = min(p_denial, _two_sided(1 - found.p_above(math.log(claimed))))
        return Part(says, p_support, p_denial, None, size_missed=True)
    return Part(says, p_support, p_denial, _rounds(found, edge))


def _rounds(found: Difference, edge: float) -> int | None:
    """Rounds to find the difference, or, sooner, to show that it is negligible."""
    if found.standard_deviation is None:
        return None
    needed = [rounds_needed(found.mean, found.standard_deviation)] if found.mean > 0 else []
    if found.mean < edge:
        needed.append(rounds_needed(edge - found.mean, found.standard_deviation))
    known = [max(one, found.n + 1) for one in needed if one is not None]
    return min(known, default=None)


def _two_sided(p_value: float) -> float:
    return min(1.0, 2 * p_value)


def _told(parts: Sequence[Part], remark: str) -> str:
    said = [part.says for part in parts[:4]]
    if len(parts) > 4:
        said.append(f"and {len(parts) - 4} more")
    return f"{'; '.join(said)}{remark}."
