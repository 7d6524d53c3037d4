"""Reads the numbers of all trials at once, one row per trial, and hands them out point by point.

In long form, with every level in every row, the numbers of a million trials don't fit a laptop's memory;
those of one point do. Names are read once for each trial and values as one stream, which takes a tenth of the
time that rows of names and values take.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import polars
from numpy.typing import NDArray

from tunnelbench.study.points import Point

_POINT = tuple(Point.model_fields)
_AT_ONCE = 50_000
"""Rows that are Python objects at the same time."""
_NEXT_COLUMN, _NEXT_NAME = "\x1f", "\x1e"
"""Between the parts of a name, and between the names of a trial."""


@dataclass(frozen=True)
class Numbers:
    """The numbers of trials: a row for each trial that has any, a column for each name."""

    trials: NDArray[np.int64]
    """Rising."""
    values: NDArray[np.float64]
    """`[trial, name]`; NaN where a trial has no such number."""
    columns: Sequence[str]
    """The columns that a long frame has in place of these."""
    names: Sequence[Sequence[str]]
    """What they say for the first column here, the second, and so on."""

    def of(self, trials: polars.Series) -> NDArray[np.float64]:
        """`[trial, name]` of these trials; NaN for what they don't have."""
        wanted = trials.to_numpy()
        if not self.trials.size:
            return np.full((wanted.size, len(self.names)), np.nan)
        places = np.minimum(np.searchsorted(self.trials, wanted), self.trials.size - 1)
        found = self.values[places]
        found[self.trials[places] != wanted] = np.nan
        return found

    def long(self, trials: polars.Series) -> polars.DataFrame:
        """One row per number of these trials: `trial`, the columns of the names, `value`."""
        values = self.of(trials)
        rows, places = np.nonzero(~np.isnan(values))
        named = [
            polars.Series(column, [name[part] for name in self.names], polars.String).gather(places)
            for part, column in enumerate(self.columns)
        ]
        value = polars.Series("value", values[rows, places], polars.Float64)
        return polars.DataFrame([trials.gather(rows).alias("trial"), *named, value])


def read_numbers(connection: sqlite3.Connection, table: str, columns: Sequence[str]) -> Numbers:
    """The numbers of a table with a row for each: `trial`, `columns` that name it, and `value`.

    Its rows have to be in the order of trials and names, as those of its primary key are.
    """
    order = f"ORDER BY trial, {', '.join(columns)}"
    name = f" || '{_NEXT_COLUMN}' || ".join(columns)
    named = connection.execute(
        f"SELECT trial, group_concat(name, '{_NEXT_NAME}')"
        f" FROM (SELECT trial, {name} AS name FROM {table} {order}) GROUP BY trial ORDER BY trial"
    )
    sets: dict[str, int] = {}
    pairs = ((trial, sets.setdefault(names, len(sets))) for trial, names in named)
    rows = np.fromiter(chain.from_iterable(pairs), np.int64).reshape(-1, 2)
    stream = connection.execute(f"SELECT value FROM {table} {order}")
    values = np.fromiter(chain.from_iterable(stream), np.float64)
    parts = [names.split(_NEXT_NAME) for names in sets]
    known = sorted({name for names in parts for name in names})
    places = {name: place for place, name in enumerate(known)}
    wide = np.full((len(rows), len(known)), np.nan)
    ends = np.cumsum(np.array([len(names) for names in parts], dtype=np.int64)[rows[:, 1]])
    for number, names in enumerate(parts):
        here = np.flatnonzero(rows[:, 1] == number)
        own = values[(ends[here] - len(names))[:, None] + np.arange(len(names))]
        wide[here[:, None], [places[name] for name in names]] = own
    return Numbers(rows[:, 0].copy(), wide, columns, [name.split(_NEXT_COLUMN) for name in known])


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
