"""Claims that one thing beats another, and that things are equal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations, product

import polars as pl

from tunnelbench.analysis.equivalence import equivalence_p_value
from tunnelbench.analysis.findings.contrast import Contrast, contrast, levels_of
from tunnelbench.analysis.findings.ruling import Part, Ruling, ordered, ruling
from tunnelbench.analysis.findings.scope import NotTestableError, Scope
from tunnelbench.analysis.findings.wording import detail, said
from tunnelbench.analysis.paired import Difference
from tunnelbench.analysis.power import rounds_needed
from tunnelbench.study.published import At, Compare, Level
from tunnelbench.study.wording import factor_words, in_percent, level_name

PAIRED_TEST = "paired t test of log ratios over rounds"
EQUIVALENCE_TEST = "two one-sided paired t tests of log ratios over rounds"


def judge_comparison(claim: Compare, scope: Scope) -> Ruling:
    """That `better` beats `worse`, each of one each of the other; or that a factor's levels are equal."""
    if claim.better is None or claim.worse is None:
        assert claim.factor is not None
        assert claim.equal_within_percent is not None
        return _judge_equality(claim.factor, claim.equal_within_percent / 100, scope)
    contrasts = beats_each(scope, list(product(_each(claim.better), _each(claim.worse))))
    parts = [ordered(found.difference, said(found, scope.metric), claim.claimed_ratio) for found in contrasts]
    details = [detail(*level) for level in levels_of(contrasts).items()]
    details += [
        detail(f"{found.first} / {found.second}", found.difference, claim.claimed_ratio)
        for found in contrasts
    ]
    return ruling(parts, tuple(details), unit_of(contrasts, scope), PAIRED_TEST)


def beats_each(scope: Scope, pairs: Sequence[tuple[At, At]]) -> list[Contrast]:
    """The better level of each pair against the worse, all in one unit.

    That is the ratio to plain IP as soon as the levels of one pair never ran in the same runtime.
    """
    found = [beats(scope, *pair) for pair in pairs]
    if len({one.is_relative for one in found}) < 2:
        return found
    return [beats(scope, *pair, by_ratios=True) for pair in pairs]


def unit_of(contrasts: Iterable[Contrast], scope: Scope) -> str:
    """The unit of levels that are compared."""
    return "ratio to plain IP" if any(found.is_relative for found in contrasts) else scope.unit


def beats(scope: Scope, better: At, worse: At, by_ratios: bool = False) -> Contrast:
    """One level against another, turned so that a difference above zero is what the claim says."""
    groups = {_name(better): scope.having(better), _name(worse): scope.having(worse)}
    first, second = reversed(groups) if scope.less_is_better else groups
    varying = scope.columns([*better, *worse])
    return contrast(groups[first], groups[second], (first, second), varying, by_ratios)


def judge_equal(contrasts: list[tuple[str, Contrast]], margin: float, scope: Scope) -> Ruling:
    """That in each of some contrasts, by where they are, the ratio is within a margin."""
    parts = [equal(found.difference, said(found, scope.metric, where), margin) for where, found in contrasts]
    details = tuple(
        detail(": ".join(filter(None, [where, f"{found.first} / {found.second}"])), found.difference, 1.0)
        for where, found in contrasts
    )
    return ruling(
        parts, details, "ratio", EQUIVALENCE_TEST, remark=f", against a margin of {in_percent(margin)}"
    )


def equal(found: Difference, says: str, margin: float) -> Part:
    """The claim that a ratio is within a margin. Denied where it is shown to be outside."""
    if found.standard_deviation is None:
        return Part(says, 1.0, 1.0, None)
    edge = math.log1p(margin)
    outside = min(found.p_above(edge), 1 - found.p_above(-edge))
    needed = rounds_needed(edge - abs(found.mean), found.standard_deviation)
    rounds = None if needed is None else max(needed, found.n + 1)
    return Part(says, equivalence_p_value(found, margin), min(1.0, 2 * outside), rounds)


def _judge_equality(factor: str, margin: float, scope: Scope) -> Ruling:
    """Each VPN apart from the others, lest what one gains hides what another loses."""
    tunnels = scope.without_plain_ip()
    names = scope.levels(factor)
    if len(names) < 2:
        raise NotTestableError(_too_few(factor, names, scope))
    found: list[tuple[str, Contrast]] = []
    vpns = tunnels.values["vpn"].unique(maintain_order=True).to_list()
    for vpn in vpns:
        own = tunnels.of(tunnels.values.filter(pl.col("vpn") == vpn))
        present = [level for level in names if own.has(factor, level)]
        for first, second in combinations(present, 2):
            groups = own.having({factor: (first,)}), own.having({factor: (second,)})
            pair = contrast(*groups, (level_name(first), level_name(second)), scope.columns([factor]))
            found.append((vpn if len(vpns) > 1 else "", pair))
    if not found:
        raise NotTestableError(f"no VPN was measured at two levels of {factor_words(factor)}")
    return judge_equal(found, margin, scope)


def _too_few(factor: str, names: tuple[Level, ...], scope: Scope) -> str:
    there = f"only {names[0]}" if names else "no level"
    return scope.with_note(f"{there} of {factor_words(factor)} was measured here", factor)


def _each(levels: At) -> list[At]:
    """One level of each factor at a time; a claim names one factor on each side."""
    return [{factor: (name,)} for factor, names in levels.items() for name in names]


def _name(levels: At) -> str:
    return ", ".join(level_name(name) for names in levels.values() for name in names)
