"""Every finding of a published study held against a campaign."""

from __future__ import annotations

import polars as pl

from tunnelbench.analysis.findings.comparing import judge_comparison
from tunnelbench.analysis.findings.compressing import FACTORS, judge_compression
from tunnelbench.analysis.findings.ranking import judge_rank, judge_stability
from tunnelbench.analysis.findings.ruling import Ruling
from tunnelbench.analysis.findings.scope import NotTestableError, Scope, scope
from tunnelbench.analysis.findings.trending import judge_trend
from tunnelbench.analysis.findings.verdict import Verdict
from tunnelbench.study.correspondence import Correspondence
from tunnelbench.study.published import (
    Claim,
    Compare,
    CompressionEffect,
    Finding,
    Published,
    Rank,
    RankStability,
    Trend,
)


def judge(values: pl.DataFrame, published: Published, correspondence: Correspondence) -> tuple[Verdict, ...]:
    """A verdict on each finding of a paper, in its order, from `scope.observed`."""
    return tuple(_verdict(finding, values, published, correspondence) for finding in published.findings)


def _verdict(
    finding: Finding, values: pl.DataFrame, published: Published, correspondence: Correspondence
) -> Verdict:
    claim = finding.claim
    varied = _varied(claim)
    try:
        found = _ruling(claim, scope(values, published, correspondence, _metric(claim), finding.at, varied))
    except NotTestableError as error:
        reason = str(error)
        found = Ruling("not testable here", f"{reason[:1].upper()}{reason[1:]}.", (), "", reason=reason)
    return Verdict(
        finding=finding.id,
        says=finding.says,
        where=finding.where,
        outcome=found.outcome,
        summary=found.summary,
        details=found.details,
        unit=found.unit,
        test=found.test,
        p_value=found.p_value,
        rounds_needed=found.rounds_needed,
        reason=found.reason,
        contradicted=finding.contradicted,
        note=_note(finding, (*finding.at, *varied), correspondence, found.summary),
    )


def _ruling(claim: Claim, about: Scope) -> Ruling:
    match claim:
        case Compare():
            return judge_comparison(claim, about)
        case Rank():
            return judge_rank(claim, about)
        case Trend():
            return judge_trend(claim, about)
        case RankStability():
            return judge_stability(claim, about)
        case CompressionEffect():
            return judge_compression(claim, about)


def _metric(claim: Claim) -> str:
    return "throughput" if isinstance(claim, CompressionEffect) else claim.metric


def _varied(claim: Claim) -> tuple[str, ...]:
    """The factors that a claim itself varies."""
    match claim:
        case Compare(factor=None, better=better, worse=worse):
            return tuple(dict.fromkeys([*(better or {}), *(worse or {})]))
        case Compare(factor=factor) | Rank(factor=factor):
            return (factor,) if factor is not None else ()
        case Trend(over=over):
            return (over,)
        case RankStability(factor=factor, over=over):
            return factor, over
        case CompressionEffect():
            return FACTORS


def _note(
    finding: Finding, factors: tuple[str, ...], correspondence: Correspondence, summary: str
) -> str | None:
    """What the paper's data says of the claim, and what stands here for its factors; not what is said yet."""
    notes = [finding.note] if finding.note else []
    notes += [correspondence.notes[name] for name in dict.fromkeys(factors) if name in correspondence.notes]
    return "; ".join(note for note in dict.fromkeys(notes) if note not in summary) or None
