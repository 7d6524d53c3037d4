"""All trials of a campaign in compact form, in which numbers stand for levels.

In long form, with every level and number of every trial, a million trials don't fit a laptop's memory; those
of some points do.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import polars
from polars import selectors

from tunnelbench.store.columns import LEVELS, POINT, TREATMENT, TYPES, read_frame
from tunnelbench.store.wide import Numbers

_TOGETHER = 50_000
"""Trials from which on a part of a campaign gets no further point."""


@dataclass(frozen=True)
class Outline:
    """Trials, and what numbers stand for."""

    trials: polars.DataFrame
    """One row per trial in the order of trials: trial, status, instance, campaign_round, and `place` and
    `point`, which stand for levels."""
    places: polars.DataFrame
    """`place`, runtime and the factors of `Treatment`."""
    points: polars.DataFrame
    """`point` and the factors of `Point`, in the order of their first trial."""

    def levels(self, rows: polars.DataFrame) -> polars.DataFrame:
        """Rows with all levels of their cell in place of `place` and `point`; words as categories."""
        placed = rows.join(self.places, on="place", how="left", maintain_order="left")
        return placed.join(self.points, on="point", how="left", maintain_order="left").drop("place", "point")

    def parts(self) -> Iterator[Outline]:
        """All trials of some points, of some others, and so on: at least one part, which may be empty."""
        sizes = self.trials.group_by("point").len().sort("point")
        before = polars.col("len").cum_sum() - polars.col("len")
        parts = sizes.select("point", part=before // _TOGETHER)
        placed = self.trials.join(parts, on="point", maintain_order="left")
        for part in placed.partition_by("part", include_key=False, maintain_order=True) or [self.trials]:
            yield replace(self, trials=part)


@dataclass(frozen=True)
class SomePoints:
    """All trials of some points, with their numbers."""

    outline: Outline
    metrics: Numbers
    costs: Numbers

    @property
    def trials(self) -> polars.DataFrame:
        """In long form, as `CampaignData.trials` has them."""
        placed = self._placed()
        measured = self.metrics.long(placed["trial"]).rename({"name": "metric"})
        # A void trial has no number, and still has a row.
        return placed.join(measured, on="trial", how="left", maintain_order="left")

    @property
    def node_costs(self) -> polars.DataFrame:
        """In long form, as `CampaignData.node_costs` has them."""
        placed = self._placed()
        return placed.join(self.costs.long(placed["trial"]), on="trial", maintain_order="left")

    def _placed(self) -> polars.DataFrame:
        return in_words(self.outline.levels(self.outline.trials).select(LEVELS))


def in_words(rows: polars.DataFrame) -> polars.DataFrame:
    """The same with words instead of categories."""
    return rows.with_columns(selectors.categorical().cast(polars.String))


def read_outline(connection: sqlite3.Connection, condition: str) -> Outline:
    """The trials for which an SQL condition holds."""
    place = ("runtime", *TREATMENT)
    instances = _read(connection, ("instance", "campaign_round", *place), "instance ORDER BY id")
    places = instances.select(place).unique(maintain_order=True).with_row_index("place")
    placed = instances.join(places, on=place, nulls_equal=True).select("instance", "campaign_round", "place")
    key = " || '|' || ".join(f"quote({factor})" for factor in POINT)
    trials = read_frame(
        connection.execute(f"SELECT id, instance, status, {key} FROM trial WHERE {condition} ORDER BY id"),
        {
            "trial": polars.Int64,
            "instance": polars.Int64,
            "status": polars.Categorical,
            "key": polars.Categorical,
        },
    )
    keys = (
        trials.group_by("key", maintain_order=True).agg(polars.col("trial").first()).with_row_index("point")
    )
    first = ", ".join(map(str, keys["trial"]))
    points = _read(connection, ("trial", *POINT), f"trial WHERE id IN ({first}) ORDER BY id")
    return Outline(
        trials.join(keys.select("key", "point"), on="key", maintain_order="left")
        .join(placed, on="instance", how="left", maintain_order="left")
        .select("trial", "status", "instance", "campaign_round", "place", "point"),
        places,
        points.drop("trial").with_row_index("point"),
    )


def _read(connection: sqlite3.Connection, columns: Sequence[str], rest: str) -> polars.DataFrame:
    """Columns of a table, words as categories; the first of them is its identity."""
    words = {column: TYPES[column] for column in columns}
    schema = {name: polars.Categorical if kind == polars.String else kind for name, kind in words.items()}
    return read_frame(connection.execute(f"SELECT id, {', '.join(columns[1:])} FROM {rest}"), schema)
