"""Claims about orders: a whole one, the best and the worst, or that an order is the same everywhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import combinations, pairwise

from tunnelbench.analysis.correlation import rank_correlation
from tunnelbench.analysis.findings.comparing import PAIRED_TEST, beats, beats_each, unit_of
from tunnelbench.analysis.findings.contrast import Contrast, levels_of
from tunnelbench.analysis.findings.ruling import NEGLIGIBLE, Part, Ruling, ordered, ruling
from tunnelbench.analysis.findings.scope import NotTestableError, Scope
from tunnelbench.analysis.findings.wording import detail, said
from tunnelbench.analysis.paired import Difference
from tunnelbench.study.published import Level, Rank, RankStability
from tunnelbench.study.wording import factor_words, level_name, level_words


def judge_rank(claim: Rank, scope: Scope) -> Ruling:
    """An order: every level beats the next. A first or last: it beats all others, or all others beat it."""
    return _judge_order(claim, scope) if claim.order else _judge_ends(claim, scope)


def judge_stability(claim: RankStability, scope: Scope) -> Ruling:
    """That an order is the same at all levels of another factor.

    Of every two levels, the one that is ahead over all must be ahead, or behind by a negligible amount at
    most, at each level of the other factor.
    """
    places = scope.levels(claim.over)
    if len(places) < 2:
        raise NotTestableError(f"fewer than two levels of {factor_words(claim.over)} were measured")
    contrasts: list[tuple[Level, Contrast]] = []
    parts: list[Part] = []
    for one, other in combinations(_ranked(scope, claim.factor), 2):
        for place in places:
            here = scope.narrowed({claim.over: (place,)})
            if here.has(claim.factor, one) and here.has(claim.factor, other):
                found = beats(here, {claim.factor: (one,)}, {claim.factor: (other,)})
                contrasts.append((place, found))
                parts.append(_kept(found.difference, said(found, scope.metric, level_name(place))))
    if not parts:
        raise NotTestableError(
            f"no two levels of {factor_words(claim.factor)} share a level of {factor_words(claim.over)}"
        )
    details = tuple(
        detail(f"{level_name(place)}: {found.first} / {found.second}", found.difference)
        for place, found in contrasts
    )
    kept = sum(found.difference.mean > 0 for _, found in contrasts)
    remark = f"; {kept} of {len(contrasts)} pairs keep their order"
    return ruling(parts, details, "ratio", PAIRED_TEST, remark=remark)


def _kept(found: Difference, says: str) -> Part:
    """The claim that one is not behind. Denied where it is shown to be behind by more than is negligible."""
    part = ordered(found, says)
    if found.standard_deviation is None:
        return part
    edge = math.log1p(NEGLIGIBLE)
    return replace(
        part,
        p_support=min(part.p_support, 2 * found.p_above(-edge)),
        p_denial=min(1.0, 2 * (1 - found.p_above(-edge))),
    )


def _judge_order(claim: Rank, scope: Scope) -> Ruling:
    present = [level for level in claim.order if scope.has(claim.factor, level)]
    missing = [level_words(claim.factor, level) for level in claim.order if level not in present]
    if len(present) < 2:
        raise NotTestableError(_lacking(claim.factor, missing, scope))
    contrasts = _pairs(scope, claim.factor, pairwise(present))
    parts = [ordered(found.difference, said(found, scope.metric)) for found in contrasts]
    means = levels_of(contrasts)
    sign = -1 if scope.less_is_better else 1
    tau = rank_correlation(range(len(present)), [-sign * means[str(level)].mean for level in present])
    remark = f"; Kendall's tau with the published order is {tau.tau:.2f}"
    details = tuple(detail(name, level) for name, level in means.items())
    return ruling(parts, details, unit_of(contrasts, scope), PAIRED_TEST, missing, remark)


def _judge_ends(claim: Rank, scope: Scope) -> Ruling:
    levels = scope.levels(claim.factor)
    ends = [end for end in (claim.first, claim.last) if end is not None]
    lacking = [level_words(claim.factor, end) for end in ends if end not in levels]
    if len(lacking) == len(ends) or len(levels) < 2:
        raise NotTestableError(_lacking(claim.factor, lacking, scope))
    pairs: list[tuple[Level, Level]] = []
    if claim.first in levels:
        pairs += [(claim.first, other) for other in levels if other != claim.first]
    if claim.last in levels:
        pairs += [(other, claim.last) for other in levels if other != claim.last]
    contrasts = _pairs(scope, claim.factor, dict.fromkeys(pairs))
    parts = [ordered(found.difference, said(found, scope.metric)) for found in contrasts]
    means = levels_of(contrasts)
    ranked = sorted(means, key=lambda name: means[name].mean, reverse=not scope.less_is_better)
    remark = f"; here {ranked[0]} is best and {ranked[-1]} is worst"
    details = tuple(detail(name, means[name]) for name in ranked)
    return ruling(parts, details, unit_of(contrasts, scope), PAIRED_TEST, lacking, remark)


def _ranked(scope: Scope, factor: str) -> list[Level]:
    """Levels of a factor, best first over all that was measured."""
    levels = scope.levels(factor)
    wins = dict.fromkeys(levels, 0)
    for one, other in combinations(levels, 2):
        try:
            found = _pair(scope, factor, one, other)
        except NotTestableError:
            continue
        wins[one if found.difference.mean > 0 else other] += 1
    return sorted(levels, key=lambda level: -wins[level])


def _pairs(scope: Scope, factor: str, pairs: Iterable[tuple[Level, Level]]) -> list[Contrast]:
    return beats_each(scope, [({factor: (better,)}, {factor: (worse,)}) for better, worse in pairs])


def _pair(scope: Scope, factor: str, better: Level, worse: Level) -> Contrast:
    return beats(scope, {factor: (better,)}, {factor: (worse,)})


def _lacking(factor: str, missing: list[str], scope: Scope) -> str:
    what = " and ".join(missing) if missing else f"a second level of {factor_words(factor)}"
    return scope.with_note(f"{what} {'were' if len(missing) > 1 else 'was'} not measured here", factor)
