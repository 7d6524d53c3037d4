"""Reads a campaign as polars frames, also while it is being written."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from functools import cached_property
from pathlib import Path
from types import TracebackType

import msgspec
import polars

from tunnelbench.plan.estimate import BACKGROUND_SECONDS
from tunnelbench.store.columns import LEVELS, POINT, TREATMENT, TYPES, read_frame
from tunnelbench.store.database import FILE_NAME, open_for_reading, translated_errors
from tunnelbench.store.lock import is_being_written
from tunnelbench.store.model import (
    CalibrationRecord,
    CampaignRecord,
    CampaignState,
    CryptographyRecord,
    MachineStateRecord,
    RekeyRecord,
    SettledRecord,
    Versions,
    WarmUpRecord,
)
from tunnelbench.store.outline import Outline, SomePoints, read_outline
from tunnelbench.store.wide import read_numbers
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.witness.evidence import Evidence

_TRIAL_LEVELS = (
    "instance.campaign_round, trial.instance, instance.runtime, "
    + ", ".join([*(f"instance.{level}" for level in TREATMENT), *(f"trial.{factor}" for factor in POINT)])
    + ", trial.id AS trial, trial.status"
)
_COUNTED = "trial.instance NOT IN (SELECT instance FROM superseded)"


class CampaignData:
    """A campaign as it was at the moment of opening: all frames belong together.

    Trials of an interrupted instance count until the same treatment has been proven again in its round.
    """

    def __init__(self, directory: Path) -> None:
        """Raises UserError if `directory` holds no campaign, or one of another version."""
        self.directory = directory
        self._path = directory / FILE_NAME
        # Asked first: a writer that ends in between has left its last words in the file by then.
        being_written = is_being_written(directory)
        self._connection = open_for_reading(self._path)
        self._connection.execute("BEGIN")
        self._campaign = _read_campaign(self._connection, being_written)

    def __enter__(self) -> CampaignData:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def campaign(self) -> CampaignRecord:
        """The campaign itself. Its state is `interrupted`, not `running`, if its writer is gone."""
        return self._campaign

    def contents(self) -> dict[str, bytes]:
        """The files that the study takes payload from, by the path that it names them by."""
        return dict(self._connection.execute("SELECT name, data FROM content"))

    def calibrations(self) -> tuple[CalibrationRecord, ...]:
        """What the load generators themselves could do when the campaign began."""
        rows = self._connection.execute(
            f"SELECT host_os, mtu, metrics, reason, {', '.join(POINT)} FROM calibration ORDER BY id"
        )
        return tuple(
            CalibrationRecord(
                host_os,
                mtu,
                Point.model_validate(dict(zip(POINT, levels, strict=True))),
                msgspec.json.decode(metrics, type=dict[str, float]),
                reason,
            )
            for host_os, mtu, metrics, reason, *levels in rows
        )

    def cryptography(self) -> tuple[CryptographyRecord, ...]:
        """What the cryptography of tunnels takes alone."""
        columns = "runtime, encryption, integrity, implementation, ns_per_packet, ns_per_byte, reason"
        rows = self._connection.execute(
            f"SELECT {columns}, {', '.join(TREATMENT)} FROM cryptography ORDER BY id"
        )
        levels = len(TREATMENT)
        return tuple(
            CryptographyRecord(
                Treatment.model_validate(dict(zip(TREATMENT, row[-levels:], strict=True))), *row[:-levels]
            )
            for row in rows
        )

    def settled(self) -> tuple[SettledRecord, ...]:
        """Cells that were not measured any more from some round on, in the order in which they were."""
        columns = ", ".join(column.name for column in fields(SettledRecord))
        rows = self._connection.execute(f"SELECT {columns} FROM settled ORDER BY campaign_round, rowid")
        return tuple(SettledRecord(*row) for row in rows)

    def warm_ups(self) -> tuple[WarmUpRecord, ...]:
        """What pilots found, in the order of pilots."""
        rows = self._connection.execute(
            "SELECT instance, point, name, seconds, series, is_settled FROM warm_up ORDER BY rowid"
        )
        return tuple(WarmUpRecord(*found, is_settled=bool(settled)) for *found, settled in rows)

    def cells(self) -> polars.DataFrame:
        """One row per cell of the study: key, its levels, and `skipped`, the reason if it isn't measured."""
        return self._frame(f"SELECT key, {', '.join([*TREATMENT, *POINT])}, skipped FROM cell ORDER BY rowid")

    def instances(self) -> polars.DataFrame:
        """One row per instance in the order of their start; `evidence` is JSON of `Evidence`, or null.

        `superseded`: the instance was interrupted and has been run again, so that its trials don't count.
        """
        frame = self._frame(
            f"SELECT id AS instance, campaign_round, position, {', '.join(TREATMENT)}, runtime,"
            " runtime_reason, status, reason, setup_ms, handshake_ms, started, ended, evidence, log_tail,"
            " id IN (SELECT instance FROM superseded) AS superseded FROM instance ORDER BY id"
        )
        return frame.with_columns(
            _moment("started"), _moment("ended"), polars.col("superseded").cast(polars.Boolean)
        )

    def evidence(self, instance: int) -> Evidence | None:
        """What the witness saw of one instance, if it looked."""
        row = self._row("SELECT evidence FROM instance WHERE id = ?", instance)
        if row is None or row[0] is None:
            return None
        return msgspec.json.decode(row[0], type=Evidence)

    @cached_property
    def outline(self) -> Outline:
        """All trials that count, with numbers for levels."""
        with translated_errors(self._path):
            return read_outline(self._connection, _COUNTED)

    def by_points(self) -> Iterator[SomePoints]:
        """The trials of some points, of some others, and so on, in the order of their first trial.

        All numbers are in memory once in compact form, and as long frames only those of some points: what
        takes them one by one can do with any campaign. There is at least one part, which may be empty.
        """
        metrics = read_numbers(self._connection, "metric", ("name",))
        costs = read_numbers(self._connection, "node_cost", ("node", "field"))
        for part in self.outline.parts():
            yield SomePoints(part, metrics, costs)

    def has_trials(self) -> bool:
        """Whether there is any trial."""
        return self._connection.execute("SELECT 1 FROM trial LIMIT 1").fetchone() is not None

    def trials(self) -> polars.DataFrame:
        """Long format: one row per trial and metric.

        Columns: campaign_round, instance, runtime, the factors of `Treatment` and of `Point` (null where they
        don't apply), trial, status, metric, value. A void trial has one row without metric and value.
        """
        parts = [part.trials for part in self.by_points()]
        return polars.concat(parts).sort("trial", "metric", maintain_order=True)

    def node_costs(self) -> polars.DataFrame:
        """Long format: the levels of `trials`, then node, field and value.

        Values of `user`, `system`, `softirq` and `total` are processor seconds per second; those of
        `voluntary_switches` and `involuntary_switches` are context switches per second, and `queued` is
        seconds per second; `system_calls_per_packet` is a ratio.
        """
        parts = [part.node_costs for part in self.by_points()]
        return polars.concat(parts).sort("trial", "node", "field")

    def void_trials(self) -> polars.DataFrame:
        """One row per void trial with its reason."""
        return self._frame(
            f"SELECT {_TRIAL_LEVELS}, trial.reason FROM trial JOIN instance ON instance.id = trial.instance"
            f" WHERE {_COUNTED} AND trial.status = 'void' ORDER BY trial.id"
        )

    def packet_logs(self) -> polars.DataFrame:
        """One row per packet log: the levels of `trials`, then written_by, file and bytes.

        The files are in the directory `PACKETS_NAME` beside the campaign's own.
        """
        return self._frame(
            f"SELECT {_TRIAL_LEVELS}, packet_log.written_by, packet_log.file, packet_log.bytes"
            " FROM packet_log JOIN trial ON trial.id = packet_log.trial"
            " JOIN instance ON instance.id = trial.instance"
            f" WHERE {_COUNTED} ORDER BY trial.id, packet_log.written_by DESC"
        )

    def machine_states(self) -> polars.DataFrame:
        """What the machine did besides the campaign: one row for each trial that counts, and others without
        levels from before and after.

        Columns: the levels of `trials`, words as categories, and the fields of `MachineStateRecord`.
        """
        columns = [column.name for column in fields(MachineStateRecord)]
        states = self._frame(f"SELECT trial, {', '.join(columns)} FROM machine_state ORDER BY id")
        placed = states.join(self.outline.trials, on="trial", how="left", maintain_order="left")
        counted = placed.filter(polars.col("trial").is_null() | polars.col("instance").is_not_null())
        return self.outline.levels(counted).select(*LEVELS, *columns)

    def traffic_seconds(self) -> float | None:
        """For how long there was traffic, searches and backgrounds included; None where nothing says it."""
        each = self.campaign().plan.get("trial")
        if not isinstance(each, int | float):
            return None
        row = self._connection.execute(
            "SELECT (SELECT count(*) FROM trial), (SELECT count(*) FROM trial WHERE background <> 'none'),"
            " (SELECT coalesce(sum(value), 0) FROM metric WHERE name = 'capacity_seconds')"
        ).fetchone()
        return row[0] * each + row[1] * BACKGROUND_SECONDS + row[2]

    def rekeys(self) -> polars.DataFrame:
        """One row per instance whose keys were changed: instance, runtime, the factors of `Treatment`, and
        the fields of `RekeyRecord`."""
        columns = ", ".join(f"rekey.{column.name}" for column in fields(RekeyRecord))
        return self._frame(
            f"SELECT rekey.instance, instance.runtime, {', '.join(f'instance.{it}' for it in TREATMENT)},"
            f" {columns} FROM rekey JOIN instance ON instance.id = rekey.instance"
            " WHERE rekey.instance NOT IN (SELECT instance FROM superseded) ORDER BY rekey.instance"
        )

    def warnings(self) -> polars.DataFrame:
        """One row per warning: instance, trial or null, the factors of `Treatment`, kind, message, advice."""
        return self._frame(
            "SELECT warning.instance, warning.trial, "
            f"{', '.join(f'instance.{level}' for level in TREATMENT)}, warning.kind,"
            " warning.message, warning.advice FROM warning JOIN instance ON instance.id = warning.instance"
            " WHERE warning.instance NOT IN (SELECT instance FROM superseded) ORDER BY warning.id"
        )

    def series(self, trial: int) -> dict[str, list[float]]:
        """Name to samples of one trial's series."""
        rows = self._connection.execute("SELECT name, samples FROM series WHERE trial = ?", (trial,))
        return {name: msgspec.msgpack.decode(samples, type=list[float]) for name, samples in rows}

    def histograms(self, trial: int) -> dict[str, bytes]:
        """Name to encoded HDR histogram of one trial."""
        return dict(self._connection.execute("SELECT name, counts FROM histogram WHERE trial = ?", (trial,)))

    def _row(self, query: str, *parameters: object) -> tuple[str | None, ...] | None:
        return self._connection.execute(query, parameters).fetchone()

    def _frame(self, query: str) -> polars.DataFrame:
        with translated_errors(self._path):
            cursor = self._connection.execute(query)
            return read_frame(cursor, {column[0]: TYPES[column[0]] for column in cursor.description})


def _read_campaign(connection: sqlite3.Connection, being_written: bool) -> CampaignRecord:
    row = connection.execute(
        "SELECT id, created, study_id, study_title, study_question, study_toml, seed, plan, versions,"
        " state, why FROM campaign"
    ).fetchone()
    identity, created, study_id, title, question, toml, seed, plan, versions, state, why = row
    abandoned = state == "running" and not being_written
    final_state: CampaignState = "interrupted" if abandoned else state
    return CampaignRecord(
        id=identity,
        created=datetime.fromisoformat(created),
        study_id=study_id,
        study_title=title,
        study_question=question,
        study_toml=toml,
        seed=seed,
        plan=json.loads(plan),
        versions=msgspec.json.decode(versions, type=Versions),
        state=final_state,
        why="its process ended without a word" if abandoned else why,
    )


def _moment(column: str) -> polars.Expr:
    return polars.col(column).str.to_datetime("%Y-%m-%dT%H:%M:%S%.6f%:z", time_unit="us", time_zone="UTC")
