"""Research questions answered in sentences made from the results."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

import polars as pl

from tunnelbench.analysis.effects import anova
from tunnelbench.analysis.equivalence import equivalence_p_value
from tunnelbench.analysis.findings.comparing import beats
from tunnelbench.analysis.findings.field import Entrant, ranked
from tunnelbench.analysis.findings.ruling import NEGLIGIBLE, SIGNIFICANCE
from tunnelbench.analysis.findings.scope import NotTestableError, Scope, scope
from tunnelbench.analysis.findings.wording import number, within
from tunnelbench.study.correspondence import Correspondence
from tunnelbench.study.published import Level, Published, Question
from tunnelbench.study.wording import factor_words, in_percent, level_name, metric_words

_NAMED = 4
"""Rivals that are named; of more, how many there are."""


@dataclass(frozen=True)
class Answer:
    """A question with its answer."""

    question: str
    sentences: tuple[str, ...]
    """At least one; the reason where it can't be answered."""


def answer_paper(
    values: pl.DataFrame, published: Published, correspondence: Correspondence
) -> tuple[Answer, ...]:
    """A paper's research questions, the main one first, from `scope.observed`; none where it lists none."""
    if published.questions is None:
        return ()
    metrics = [str(metric) for metric in published.metrics] or ["throughput"]
    questions = (published.questions.main, *published.questions.sub)
    varied = {name for one in questions for name in (*one.best, one.for_each, one.varies_with) if name}
    sentences: list[list[str]] = [[] for _ in questions]
    for metric, transport in product(metrics, published.factors.get("transport", ("tcp", "udp"))):
        place = f"{metric_words(metric).capitalize()} on {str(transport).upper()}"
        try:
            about = scope(values, published, correspondence, metric, {"transport": (transport,)}, varied)
        except NotTestableError as reason:
            for own in sentences:
                own.append(f"{place}: can't be said, {reason}.")
            continue
        for question, own in zip(questions, sentences, strict=True):
            own += [f"{place}: {sentence}" for sentence in _answers(question, about.without_plain_ip())]
    return tuple(
        Answer(question.asks, tuple(own)) for question, own in zip(questions, sentences, strict=True)
    )


def _answers(question: Question, about: Scope) -> list[str]:
    try:
        return _answered(question, about)
    except NotTestableError as reason:
        return [f"can't be said, {reason}."]


def _answered(question: Question, about: Scope) -> list[str]:
    if question.varies_with is not None:
        return [_variation(question.varies_with, about)]
    if question.for_each is None:
        return [_best_combination(question.best, about)]
    found: list[str] = []
    for level in about.levels(question.for_each):
        best = _best_combination(question.best, about.narrowed({question.for_each: (level,)}))
        found.append(f"with {level_name(level)}, {best}")
    return found


def _best_combination(factors: tuple[str, ...], about: Scope) -> str:
    groups: dict[str, pl.DataFrame] = {}
    for combination in product(*(about.levels(factor) for factor in factors)):
        levels: dict[str, tuple[Level, ...]] = {
            factor: (level,) for factor, level in zip(factors, combination, strict=True)
        }
        try:
            groups[" with ".join(map(level_name, combination))] = about.having(levels)
        except NotTestableError:
            continue
    if len(groups) < 2:
        raise NotTestableError(f"fewer than two levels of {_together(factors)} were measured")
    field = ranked(groups, about.columns(factors), less_is_better=about.less_is_better)
    if not field:
        raise NotTestableError(f"the levels of {_together(factors)} share no condition")
    return _best(field, about.unit, more=not about.less_is_better)


def _together(factors: tuple[str, ...]) -> str:
    return " and ".join(map(factor_words, factors))


def _variation(factor: str, about: Scope) -> str:
    """Whether a factor matters: the largest difference between its levels, and its share of the variance."""
    pairs = [
        beats(about, {factor: (one,)}, {factor: (other,)})
        for one, other in combinations(about.levels(factor), 2)
    ]
    if not pairs:
        raise NotTestableError(
            about.with_note(f"fewer than two levels of {factor_words(factor)} were measured", factor)
        )
    largest = max(pairs, key=lambda pair: abs(pair.difference.mean))
    found = largest.difference
    if found.p_value is None:
        verdict = "it can't be said from one round"
    elif found.p_value <= SIGNIFICANCE / len(pairs):
        is_small = equivalence_p_value(found, NEGLIGIBLE) <= SIGNIFICANCE
        verdict = f"yes, but by less than {in_percent(NEGLIGIBLE)}" if is_small else "yes"
    elif equivalence_p_value(found, NEGLIGIBLE) <= SIGNIFICANCE:
        verdict = f"no, not by {in_percent(NEGLIGIBLE)}"
    else:
        verdict = "it can't be said yet"
    share = _share(factor, about)
    return (
        f"{verdict}; {largest.first} has {number(found.ratio)} times the value of {largest.second} "
        f"({within(found)}), and the factor explains {100 * share:.1f} % of the variance."
    )


def _share(factor: str, about: Scope) -> float:
    columns = tuple(sorted(about.columns([factor])))
    others = [
        (name,)
        for name in ("campaign_round", "vpn", "suite", "ip", "payload_bytes", "gateway_os", "host_os")
        if name not in columns and about.values[name].n_unique() > 1
    ]
    logarithms = about.values.with_columns(pl.col("value").log())
    found = anova(logarithms, "value", [columns, *others]).effects
    return next((effect.share for effect in found if effect.factors == columns), 0.0)


def _best(field: list[Entrant], unit: str, *, more: bool) -> str:
    best = field[0]
    interval = best.level.interval()
    between = f" ({number(interval[0])} to {number(interval[1])})" if interval else " (one round)"
    said = f"{best.name} has the {'most' if more else 'least'}: {number(best.level.ratio)} {unit}{between}"
    rivals = [one.name for one in field[1:] if one.tier == 1]
    if best.level.n < 2:
        told = "; one round tells none apart"
    elif len(rivals) > _NAMED:
        told = f"; {len(rivals)} others can't be told apart from it"
    elif rivals:
        told = f"; {', '.join(rivals)} can't be told apart from it"
    else:
        told = ""
    last = field[-1]
    worst = (
        f"; {last.name} has the {'least' if more else 'most'}, {number(last.level.ratio)}"
        if last.tier > 1
        else ""
    )
    return f"{said}{told}{worst}."
