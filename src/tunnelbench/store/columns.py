"""The columns of the store's frames, and how rows become frames."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from dataclasses import fields

import polars

from tunnelbench.store.model import RekeyRecord
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment

POINT = tuple(Point.model_fields)
TREATMENT = tuple(Treatment.model_fields)
LEVELS = ("campaign_round", "instance", "runtime", *TREATMENT, *POINT, "trial", "status")
"""Columns of every row that belongs to a trial."""

TYPES: dict[str, type[polars.DataType]] = {
    "key": polars.String,
    "campaign_round": polars.Int64,
    "instance": polars.Int64,
    "position": polars.Int64,
    "runtime": polars.String,
    "runtime_reason": polars.String,
    "vpn": polars.String,
    "suite": polars.String,
    "options": polars.String,
    "outer_ip": polars.String,
    "clients": polars.Int64,
    "gateway_os": polars.String,
    "host_os": polars.String,
    "mtu": polars.Int64,
    "transport": polars.String,
    "ip": polars.String,
    "profile": polars.String,
    "payload_bytes": polars.Int64,
    "rate": polars.String,
    "direction": polars.String,
    "streams": polars.Int64,
    "content": polars.String,
    "sending": polars.String,
    "congestion_control": polars.String,
    "background": polars.String,
    "load": polars.String,
    "skipped": polars.String,
    "trial": polars.Int64,
    "status": polars.String,
    "reason": polars.String,
    "seconds": polars.Float64,
    "metric": polars.String,
    "node": polars.String,
    "field": polars.String,
    "value": polars.Float64,
    "written_by": polars.String,
    "file": polars.String,
    "bytes": polars.Int64,
    "setup_ms": polars.Float64,
    "handshake_ms": polars.Float64,
    **dict.fromkeys((column.name for column in fields(RekeyRecord)), polars.Float64),
    "moment": polars.String,
    "processors": polars.Int64,
    "others": polars.Float64,
    "stolen": polars.Float64,
    "frequency_mhz": polars.Float64,
    "temperature_c": polars.Float64,
    "clock_step_ms": polars.Float64,
    "clock_source": polars.String,
    "started": polars.String,
    "ended": polars.String,
    "evidence": polars.String,
    "log_tail": polars.String,
    "superseded": polars.Int64,
    "kind": polars.String,
    "message": polars.String,
    "advice": polars.String,
}

_AT_ONCE = 50_000
"""Rows that are Python objects at the same time."""


def read_frame(cursor: sqlite3.Cursor, schema: Mapping[str, type[polars.DataType]]) -> polars.DataFrame:
    """All rows of a query, whose columns a schema names."""
    return polars.concat(list(_parts(cursor, schema)))


def _parts(cursor: sqlite3.Cursor, schema: Mapping[str, type[polars.DataType]]) -> Iterator[polars.DataFrame]:
    yield polars.DataFrame(schema=schema)
    while rows := cursor.fetchmany(_AT_ONCE):
        columns = zip(schema, zip(*rows, strict=True), strict=True)
        yield polars.DataFrame(
            [polars.Series(name, values, dtype=schema[name], strict=False) for name, values in columns]
        )
