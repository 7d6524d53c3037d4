"""How much of the variance each factor and each two together explain: an analysis of variance of logarithms.

Sums of squares are of type II, each term after all others that don't contain it (F. Yates, Journal of the
American Statistical Association 29, 1934; Ø. Langsrud, Statistics and Computing 13, 2003), so that it does
not matter which factor is named first where cells are missing. They are differences between nested least
squares, which are all made from one table of cross products: a million values take little more than that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.frames import POINT

MOST_LEVELS = 400
"""Levels of an interaction; larger ones are left to the residual."""

ROUND = "campaign_round"

HARD = ("tunnel", "outer_ip", "clients", "gateway_os", "host_os", "mtu")
"""Factors that vary from instance to instance; the others vary inside one."""


@dataclass(frozen=True)
class Effect:
    """What one term explains."""

    factors: tuple[str, ...]
    """One, or two for an interaction."""
    sum_of_squares: float
    freedom: int
    share: float
    """Eta squared: of the whole sum of squares. With cells missing the shares need not add up to 1."""
    f: float | None
    """None where there is no residual."""
    p_value: float | None


@dataclass(frozen=True)
class Effects:
    """An analysis of variance."""

    effects: tuple[Effect, ...]
    """Those of factors first, then interactions, each by their share."""
    residual_share: float
    residual_freedom: int
    n: int


def effects(values: pl.DataFrame, metric: str = "throughput") -> Effects | None:
    """The main effects and two-way interactions of everything that a campaign varied.

    Takes `frames.instance_values`, of which it takes logarithms, so that effects are ratios. The factor
    `tunnel` is VPN, suite and options together; plain IP counts as one. Rounds are a block: a main effect
    without interactions. What is hard to change is tested against the spread of instances that were treated
    alike, the rest against the residual (the split-plot design: D. C. Montgomery, Design and Analysis of
    Experiments, 8th edition, 2013, section 14.5). Of factors that always vary together, the first stands for
    all. None where nothing varies.
    """
    # Lazily, since a long frame has many rows of other metrics and columns that nothing is asked of.
    kept = (
        values.lazy()
        .filter(pl.col("metric") == metric, pl.col("value") > 0)
        .select(
            ROUND,
            "instance",
            pl.col("value").log(),
            pl.concat_str("vpn", "suite", "options", separator=" ").alias("tunnel"),
            *HARD[1:],
            "runtime",
            *POINT,
        )
        .collect()
    )
    whole = [name for name in (*HARD, "runtime", *POINT) if kept[name].n_unique() > 1]
    if kept.height < 2 or not whole:
        return None
    found = anova(kept, "value", _terms(kept, whole))
    hard = [name for name in whole if name in (*HARD, "runtime")]
    instances = kept.group_by(ROUND, "instance", *hard, maintain_order=True).agg(pl.col("value").mean())
    tested = anova(instances, "value", _terms(instances, hard)) if hard else None
    own = {effect.factors: effect for effect in (tested.effects if tested else ())}
    corrected = [
        Effect(one.factors, one.sum_of_squares, one.freedom, one.share, by.f, by.p_value)
        if (by := own.get(one.factors)) is not None
        else one
        for one in found.effects
    ]
    return Effects(tuple(corrected), found.residual_share, found.residual_freedom, found.n)


def _terms(values: pl.DataFrame, factors: Sequence[str]) -> list[tuple[str, ...]]:
    """The round, every factor, and every two whose combinations are more than either's levels."""
    combinations_of_levels = values.select(factors).unique()
    count = {names: combinations_of_levels.select(names).n_unique() for names in _singles_and_pairs(factors)}
    distinct = [
        name
        for place, name in enumerate(factors)
        if not any(count[other, name] == count[name,] == count[other,] for other in factors[:place])
    ]
    terms: list[tuple[str, ...]] = [(ROUND,)] if values[ROUND].n_unique() > 1 else []
    terms += [(name,) for name in distinct]
    for pair in combinations(distinct, 2):
        if max(count[name,] for name in pair) < count[pair] <= MOST_LEVELS:
            terms.append(pair)
    return terms


def _singles_and_pairs(factors: Sequence[str]) -> list[tuple[str, ...]]:
    return [*((name,) for name in factors), *combinations(factors, 2)]


def anova(values: pl.DataFrame, response: str, terms: Sequence[tuple[str, ...]]) -> Effects:
    """The analysis of variance of a column by terms of one or more columns."""
    y = values[response].to_numpy().astype(np.float64)
    y = y - y.mean()
    total = float(y @ y)
    products = _Products.of(y, [_Levels.of(values, term) for term in terms])
    contains = _containment(values, terms)
    everything = list(range(len(terms)))
    explained, rank = products.fit(everything)
    residual, freedom = max(total - explained, 0.0), int(y.size - rank)
    found: list[Effect] = []
    for index, term in enumerate(terms):
        others = [other for other in everything if other != index and index not in contains[other]]
        with_term, without = products.fit([*others, index]), products.fit(others)
        square, own = max(with_term[0] - without[0], 0.0), with_term[1] - without[1]
        f = p_value = None
        if own > 0 and freedom > 0 and residual > 1e-12 * max(total, 1e-300):
            f = (square / own) / (residual / freedom)
            p_value = float(special.fdtrc(own, freedom, f))
        found.append(Effect(term, square, own, square / total if total > 0 else 0.0, f, p_value))
    found = [effect for effect in found if effect.freedom > 0]
    found.sort(key=lambda effect: (len(effect.factors), -effect.share))
    return Effects(tuple(found), residual / total if total > 0 else 0.0, freedom, int(y.size))


def _containment(values: pl.DataFrame, terms: Sequence[tuple[str, ...]]) -> list[set[int]]:
    """For each term those that its levels determine: an interaction its factors, a size its transport.

    Rounds are a block, which neither determines anything nor is determined.
    """
    factors = [index for index, term in enumerate(terms) if term != (ROUND,)]
    names = list(dict.fromkeys(name for index in factors for name in terms[index]))
    found: list[set[int]] = [set() for _ in terms]
    if not names:
        return found
    levels = values.select(names).unique()
    counts = {index: levels.select(terms[index]).n_unique() for index in factors}
    for one, other in combinations(factors, 2):
        both = levels.select(list(dict.fromkeys([*terms[one], *terms[other]]))).n_unique()
        if both == counts[one] > counts[other]:
            found[one].add(other)
        elif both == counts[other] > counts[one]:
            found[other].add(one)
    return found


@dataclass(frozen=True)
class _Levels:
    """Which level of a term each value has."""

    of_values: NDArray[np.intp]
    count: int

    @classmethod
    def of(cls, values: pl.DataFrame, term: Sequence[str]) -> _Levels:
        """Only combinations that occur are levels."""
        found = cls(np.zeros(values.height, dtype=np.intp), 1)
        for name in term:
            known = values.select(name).unique(maintain_order=True).with_row_index("level")
            own = values.select(name).join(
                known, on=name, how="left", nulls_equal=True, maintain_order="left"
            )
            combined = found.of_values * known.height + own["level"].to_numpy()
            occurs = np.bincount(combined, minlength=found.count * known.height) > 0
            found = cls((np.cumsum(occurs) - 1)[combined], int(occurs.sum()))
        return found

    def counts(self, other: _Levels) -> NDArray[np.float64]:
        """`[own level, other level]`: how many values have both."""
        size = (self.count, other.count)
        found = np.bincount(self.of_values * other.count + other.of_values, minlength=size[0] * size[1])
        return found.reshape(size).astype(np.float64)

    def sums(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Of `y` by level."""
        return np.bincount(self.of_values, y, self.count).astype(np.float64)


@dataclass
class _Products:
    """Cross products of all terms, from which every least-squares fit of some of them is made.

    The term with most levels, such as many rounds, is eliminated once: its own products are diagonal.
    """

    gram: NDArray[np.float64]
    """Of a column of ones and all other terms."""
    right: NDArray[np.float64]
    columns: Mapping[int, NDArray[np.intp]]
    """Of each other term."""
    largest: int
    """The term with most levels."""
    across: NDArray[np.float64]
    """Of the other columns with those of the largest."""
    counts: NDArray[np.float64]
    """Of the largest with itself."""
    sums: NDArray[np.float64]
    """Of the largest with the response."""

    @classmethod
    def of(cls, y: NDArray[np.float64], terms: Sequence[_Levels]) -> _Products:
        largest = max(range(len(terms)), key=lambda term: terms[term].count)
        others = [term for term in range(len(terms)) if term != largest]
        blocks = [_Levels(np.zeros(y.size, dtype=np.intp), 1), *(terms[other] for other in others)]
        ends = np.cumsum([block.count for block in blocks]).tolist()
        columns = [np.arange(start, end, dtype=np.intp) for start, end in pairwise(ends)]
        return cls(
            gram=np.block([[one.counts(other) for other in blocks] for one in blocks]),
            right=np.concatenate([block.sums(y) for block in blocks]),
            columns=dict(zip(others, columns, strict=True)),
            largest=largest,
            across=np.concatenate([block.counts(terms[largest]) for block in blocks]),
            counts=np.bincount(terms[largest].of_values).astype(np.float64),
            sums=terms[largest].sums(y),
        )

    def fit(self, terms: Sequence[int]) -> tuple[float, int]:
        """Sum of squares that some terms explain together, and their rank."""
        if self.largest not in terms:
            return self._fit_small(self.gram, self.right, terms)
        square, rank = self._fit_small(*self._without_largest, terms)
        return float((self.sums**2 / self.counts).sum()) + square, self.counts.size + rank

    @cached_property
    def _without_largest(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        across = self.across / self.counts
        return self.gram - across @ self.across.T, self.right - across @ self.sums

    def _fit_small(
        self, gram: NDArray[np.float64], right: NDArray[np.float64], terms: Sequence[int]
    ) -> tuple[float, int]:
        columns = [self.columns[term] for term in terms if term != self.largest]
        places = np.concatenate([np.zeros(1, dtype=np.intp), *columns])
        scale = float(self.gram[0, 0])
        return _explained(gram[np.ix_(places, places)], right[places], scale)


def _explained(gram: NDArray[np.float64], right: NDArray[np.float64], scale: float) -> tuple[float, int]:
    """What least squares explain, from cross products that need not have full rank; `scale` is their size."""
    eigenvalues, vectors = np.linalg.eigh(gram)
    kept = eigenvalues > scale * 1e-10
    projected = vectors[:, kept].T @ right
    return float((projected**2 / eigenvalues[kept]).sum()), int(kept.sum())
