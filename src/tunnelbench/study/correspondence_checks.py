"""What can be wrong with a correspondence: names that the paper, the columns or the catalogue don't have."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tunnelbench.errors import UserError
from tunnelbench.study.catalogue import Catalogue
from tunnelbench.study.checks import Found, sentences
from tunnelbench.study.correspondence import COLUMNS, Correspondence, is_value_of
from tunnelbench.study.locator import KeyPath
from tunnelbench.study.model import Study
from tunnelbench.study.nearest import advice_on
from tunnelbench.study.published import Published, published


def wrong_correspondence(study: Study, catalogue: Catalogue) -> Found:
    """Everything in a study's `[published]` that means nothing."""
    if study.published is None:
        return []
    try:
        paper = published(study.published.source)
    except UserError as error:
        return [(("published", "source"), sentences(error.message, error.advice or ""))]
    return [*_unknown_levels(study.published, paper), *_unknown_values(study.published, catalogue)]


def _unknown_levels(correspondence: Correspondence, paper: Published) -> Iterator[tuple[KeyPath, str]]:
    for table in ("levels", "notes"):
        for factor in getattr(correspondence, table):
            if factor not in paper.factor_names:
                yield (
                    ("published", table, factor),
                    _unknown("factor", factor, paper.factor_names, f"factors of {correspondence.source}"),
                )
    for factor, levels in correspondence.levels.items():
        known = [str(level) for level in paper.levels_of(factor)]
        for level in levels:
            if factor in paper.factor_names and level not in known:
                yield (
                    ("published", "levels", factor, level),
                    _unknown("level", level, known, f"levels of {factor} in {correspondence.source}"),
                )


def _unknown_values(correspondence: Correspondence, catalogue: Catalogue) -> Iterator[tuple[KeyPath, str]]:
    names = {
        "vpn": tuple(catalogue.vpns),
        "suite": tuple(dict.fromkeys(suite for vpn in catalogue.vpns.values() for suite in vpn.suites)),
        "profile": tuple(catalogue.profiles),
        "load": tuple(catalogue.loads),
    }
    for factor, levels in correspondence.levels.items():
        for level, selection in levels.items():
            for column, values in selection.items():
                path = ("published", "levels", factor, level, column)
                if column not in COLUMNS:
                    yield path, _unknown("column", column, COLUMNS, "columns")
                    continue
                for index, value in enumerate(values):
                    if column in names and value not in names[column]:
                        yield (
                            (*path, index),
                            _unknown(column, str(value), names[column], f"names of {column}"),
                        )
                    elif not is_value_of(column, value):
                        yield (*path, index), f"{column} is never {value!r}"


def _unknown(kind: str, name: str, known: Iterable[str], what: str) -> str:
    return sentences(f"unknown {kind} '{name}'", advice_on(name, known, what))
