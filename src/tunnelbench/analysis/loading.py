"""What a background adds to a probe: the same traffic beside it and alone, measured in the same instances.

Differences and not ratios, since a full queue adds its length to a short delay as to a long one. Student's
paired interval of their mean: loaded and alone share an instance's luck, which cancels.
"""

from __future__ import annotations

import math

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import special  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.frames import CELL, POINT
from tunnelbench.analysis.intervals import CONFIDENCE

_PAIRING = ("instance", *(factor for factor in POINT if factor != "background"), "metric")


def added_by_background(values: pl.DataFrame) -> pl.DataFrame:
    """The columns of a cell with a background, metric, `n`, `added`, `low` and `high`.

    `values`: as `instance_values` makes them. `added` is the mean over `n` instances of what was measured
    beside the background less what was measured alone, in the metric's unit; `low` and `high` are the ends of
    its 95 % interval, null for one instance. What was not measured alone has no row.
    """
    is_alone = pl.col("background") == "none"
    alone = values.filter(is_alone).select(*_PAIRING, alone="value")
    added = pl.col("value") - pl.col("alone")
    means = (
        values.filter(~is_alone)
        .join(alone, on=_PAIRING, nulls_equal=True, maintain_order="left")
        .group_by(*CELL, "metric", maintain_order=True)
        .agg(n=pl.len(), added=added.mean(), deviation=added.std())
    )
    half = pl.Series("half", _student(means["n"].to_numpy())) * means["deviation"] / means["n"].sqrt()
    return means.drop("deviation").with_columns(low=pl.col("added") - half, high=pl.col("added") + half)


def _student(counts: NDArray[np.uint32]) -> NDArray[np.float64]:
    """By how many standard errors each interval reaches out; NaN for a count of one."""
    freedom = np.where(counts > 1, counts.astype(np.float64) - 1, math.nan)
    return special.stdtrit(freedom, (1 + CONFIDENCE) / 2)
