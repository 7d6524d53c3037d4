"""Several groups of results side by side: which is best, and which can't be told from it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tunnelbench.analysis.findings.contrast import FOLLOWS, by_round
from tunnelbench.analysis.frames import CELL
from tunnelbench.analysis.groups import scott_knott
from tunnelbench.analysis.paired import Difference, difference


@dataclass(frozen=True)
class Entrant:
    """One of the groups."""

    name: str
    tier: int
    """1 for the best and what can't be told from it."""
    level: Difference
    """Logarithm of its values, over rounds."""


def ranked(
    groups: Mapping[str, pl.DataFrame], varying: Collection[str], *, less_is_better: bool = False
) -> list[Entrant]:
    """Groups by name, best first, over the conditions that all share; empty where they share none.

    Each group has the columns of a cell, `campaign_round` and `value`; `varying` are the columns by which
    they differ.
    """
    free = set(varying).union(*(FOLLOWS.get(column, ()) for column in varying))
    keys = [column for column in CELL if column not in free]
    means = [
        values.group_by("campaign_round", *keys)
        .agg(pl.col("value").log().mean())
        .with_columns(group=pl.lit(name))
        for name, values in groups.items()
    ]
    if not means:
        return []
    everything = pl.concat(means).with_columns(groups=pl.col("group").n_unique().over(keys))
    shared = everything.filter(pl.col("groups") == len(groups))
    if shared.is_empty():
        return []
    numbers = shared["campaign_round"].unique().sort()
    matrix = np.full((numbers.len(), len(groups)), np.nan)
    for column, name in enumerate(groups):
        own = shared.filter(pl.col("group") == name)
        rows = np.searchsorted(numbers.to_numpy(), own["campaign_round"].unique().sort().to_numpy())
        matrix[rows, column] = by_round(own, keys, "value")
    tiers = scott_knott(-matrix if less_is_better else matrix)
    found = [
        Entrant(name, tier, difference(_present(matrix[:, column])))
        for column, (name, tier) in enumerate(zip(groups, tiers, strict=True))
    ]
    sign = 1 if less_is_better else -1
    return sorted(found, key=lambda one: (one.tier, sign * one.level.mean))


def _present(values: NDArray[np.float64]) -> NDArray[np.float64]:
    return values[~np.isnan(values)]
