"""Logarithms of a metric by tunnel and round: what comparisons of tunnels at one point start from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tunnelbench.analysis.frames import POINT, TREATMENT

PLACE = ("runtime", *POINT)
"""Where tunnels can be compared: the same point in the same runtime."""


@dataclass(frozen=True)
class Matrix:
    """Tunnels at one place."""

    place: dict[str, object]
    """Levels by column of PLACE."""
    treatments: pl.DataFrame
    """Columns of `frames.TREATMENT`, a row for each column of `values`."""
    values: NDArray[np.float64]
    """`[round, treatment]`: natural logarithm of the metric; NaN where there is none."""


def matrices(values: pl.DataFrame, metric: str) -> list[Matrix]:
    """A matrix for each place, from `frames.instance_values`; values of zero or below have no logarithm."""
    kept = values.filter(pl.col("metric") == metric, pl.col("value") > 0)
    found: list[Matrix] = []
    for _, here in kept.group_by(PLACE, maintain_order=True):
        treatments = here.select(TREATMENT).unique(maintain_order=True).with_row_index("treatment")
        rounds = here.select("campaign_round").unique().sort("campaign_round").with_row_index("row")
        placed = here.join(treatments, on=TREATMENT, nulls_equal=True).join(rounds, on="campaign_round")
        cells = placed.group_by("row", "treatment").agg(pl.col("value").log().mean())
        matrix = np.full((rounds.height, treatments.height), np.nan)
        matrix[cells["row"].to_numpy(), cells["treatment"].to_numpy()] = cells["value"].to_numpy()
        place = here.select(PLACE).row(0, named=True)
        found.append(Matrix(place, treatments.select(TREATMENT), matrix))
    return found
