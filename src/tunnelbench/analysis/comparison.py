"""Every two tunnels of a place compared round by round."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl

from tunnelbench.analysis.frames import TREATMENT, TRIALS
from tunnelbench.analysis.holm import holm
from tunnelbench.analysis.observations import PLACE, Matrix, matrices
from tunnelbench.analysis.paired import difference
from tunnelbench.analysis.power import SIGNIFICANCE, rounds_needed

_OTHER = "_other"

COMPARISONS = pl.Schema(
    {
        **{column: TRIALS[column] for column in PLACE},
        **{column: TRIALS[column] for column in TREATMENT},
        **{f"{column}{_OTHER}": TRIALS[column] for column in TREATMENT},
        "n": pl.Int64,
        "ratio": pl.Float64,
        "low": pl.Float64,
        "high": pl.Float64,
        "effect_size": pl.Float64,
        "p_value": pl.Float64,
        "p_holm": pl.Float64,
        "rounds_needed": pl.Int64,
    }
)
"""Columns of `paired_comparisons`."""


def paired_comparisons(values: pl.DataFrame, metric: str = "throughput") -> pl.DataFrame:
    """One row per two treatments at a place (`observations.PLACE`), from `frames.instance_values`.

    Columns: the place, the first treatment, the second with the suffix `_other`, and

    - `n`: rounds that have both; pairs that share none are left out;
    - `ratio`, `low`, `high`: geometric mean of first / second over rounds, and Student's interval of 95 %;
    - `effect_size`: Hedges' g of the paired differences of logarithms;
    - `p_value`: of the paired t test; `p_holm`: corrected for all pairs of the place;
    - `rounds_needed`: in all, to find a difference of this size with a power of 80 %, where it isn't found.

    With one round there is only `ratio`; without spread there is no effect size.
    """
    frames = [_compared(matrix) for matrix in matrices(values, metric)]
    return pl.concat([pl.DataFrame(schema=COMPARISONS), *frames])


def _compared(matrix: Matrix) -> pl.DataFrame:
    pairs: list[tuple[int, int]] = []
    rows: list[tuple[int, float, float | None, float | None, float | None, float | None, int | None]] = []
    for first, second in combinations(range(matrix.values.shape[1]), 2):
        apart = matrix.values[:, first] - matrix.values[:, second]
        apart = apart[~np.isnan(apart)]
        if apart.size == 0:
            continue
        found = difference(apart)
        low, high = found.interval() or (None, None)
        p_value, needed = found.p_value, None
        if p_value is not None and p_value > SIGNIFICANCE and found.standard_deviation:
            needed = rounds_needed(found.mean, found.standard_deviation)
        pairs.append((first, second))
        rows.append((found.n, found.ratio, low, high, found.effect_size, p_value, needed))
    columns = ("n", "ratio", "low", "high", "effect_size", "p_value", "rounds_needed")
    numbers = pl.DataFrame(rows, schema={name: COMPARISONS[name] for name in columns}, orient="row")
    tested = numbers["p_value"].drop_nulls().to_numpy()
    corrected = iter(holm(tested).tolist())
    p_holm = [None if p_value is None else next(corrected) for p_value in numbers["p_value"]]
    first, second = ([pair[side] for pair in pairs] for side in (0, 1))
    others = matrix.treatments[second].rename(lambda column: f"{column}{_OTHER}")
    place = pl.DataFrame([matrix.place] * len(pairs), schema={column: TRIALS[column] for column in PLACE})
    joined = pl.concat([place, matrix.treatments[first], others, numbers], how="horizontal")
    return joined.with_columns(pl.Series("p_holm", p_holm, pl.Float64)).select(COMPARISONS.names())
