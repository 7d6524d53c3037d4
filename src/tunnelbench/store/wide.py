"""Reads the numbers of all trials at once, one row per trial, and hands them out point by point.

In long form, with every level in every row, the numbers of a million trials don't fit a laptop's memory;
those of one point do. SQLite pivots, so that what is fetched is one row per trial and not one per number.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars

from tunnelbench.study.points import Point

_POINT = tuple(Point.model_fields)
_AT_ONCE = 50_000
"""Rows that are Python objects at the same time."""


@dataclass(frozen=True)
class Numbers:
    """The numbers of trials, one row each in the order of trials: `trial`, and a column for each name."""

    frame: polars.DataFrame
    columns: Sequence[str]
    """The columns that a long frame has in place of these."""
    names: Sequence[Sequence[str]]
    """What they say for the first column here, the second, and so on."""

    def long(self, trials: polars.DataFrame) -> polars.DataFrame:
        """One row per number of these trials: `trial`, the columns of the names, `value`."""
        wide = self._of(trials["trial"])
        number = polars.DataFrame(
            [(str(place), *name) for place, name in enumerate(self.names)],
            schema=dict.fromkeys(["number", *self.columns], polars.String),
            orient="row",
        )
        rows = wide.unpivot(index="trial", variable_name="number", value_name="value").drop_nulls("value")
        return rows.join(number, on="number").select("trial", *self.columns, "value")

    def _of(self, trials: polars.Series) -> polars.DataFrame:
        """The rows of these trials; looked up, since a join would go through all rows for each point."""
        places = self.frame["trial"].search_sorted(trials)
        inside = places < self.frame.height
        found = self.frame[places.filter(inside)]
        return found.filter(found["trial"] == trials.filter(inside))


def read_numbers(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> Numbers:
    """The numbers of a table with a row for each: `trial`, `columns` that name it, and `value`."""
    names = connection.execute(
        f"SELECT DISTINCT {', '.join(columns)} FROM {table} ORDER BY {', '.join(columns)}"
    ).fetchall()
    chosen = " AND ".join(f"{column} = ?" for column in columns)
    pivot = ", ".join(f"max(value) FILTER (WHERE {chosen})" for _ in names)
    cursor = connection.execute(
        f"SELECT trial{', ' if names else ''}{pivot} FROM {table} GROUP BY trial ORDER BY trial",
        [level for name in names for level in name],
    )
    schema = {"trial": polars.Int64, **{str(place): polars.Float64 for place in range(len(names))}}
    frame = polars.concat(list(_frames(cursor, schema)))
    return Numbers(frame, columns, names)


def read_trials(connection: sqlite3.Connection, condition: str) -> Iterator[tuple[Point, polars.DataFrame]]:
    """One point after another, in the order of their first trial, with its trials: id, instance, status."""
    key = " || '|' || ".join(f"coalesce({factor}, '')" for factor in _POINT)
    cursor = connection.execute(
        f"SELECT id, instance, status, {key} FROM trial WHERE {condition} ORDER BY id"
    )
    schema = {
        "trial": polars.Int64,
        "instance": polars.Int64,
        "status": polars.Categorical,
        "point": polars.Categorical,
    }
    trials = polars.concat(list(_frames(cursor, schema)))
    for of_point in trials.partition_by("point", maintain_order=True):
        levels = connection.execute(
            f"SELECT {', '.join(_POINT)} FROM trial WHERE id = ?", (of_point["trial"][0],)
        ).fetchone()
        point = Point.model_validate(dict(zip(_POINT, levels, strict=True)))
        yield point, of_point.select("trial", "instance", polars.col("status").cast(polars.String))


def _frames(
    cursor: sqlite3.Cursor, schema: Mapping[str, type[polars.DataType]]
) -> Iterator[polars.DataFrame]:
    yield polars.DataFrame(schema=schema)
    while rows := cursor.fetchmany(_AT_ONCE):
        columns = zip(schema, zip(*rows, strict=True), strict=True)
        yield polars.DataFrame(
            [polars.Series(name, values, dtype=schema[name], strict=False) for name, values in columns]
        )
