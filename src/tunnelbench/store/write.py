"""Writes a campaign down while it runs: one transaction per trial, on the disk when it returns."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

import msgspec

from tunnelbench.errors import UserError
from tunnelbench.store.database import (
    FILE_NAME,
    PACKETS_NAME,
    create_database,
    open_for_writing,
    require_campaign,
    translated_errors,
)
from tunnelbench.store.lock import WriterLock
from tunnelbench.store.model import (
    CalibrationRecord,
    CampaignRecord,
    CampaignState,
    CryptographyRecord,
    InstanceEnd,
    InstanceRecord,
    MachineStateRecord,
    PacketLogRecord,
    RekeyRecord,
    SettledRecord,
    TrialRecord,
    WarmUpRecord,
    WarningRecord,
)
from tunnelbench.study.cells import Cell
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.witness.evidence import Evidence

_TREATMENT = tuple(Treatment.model_fields)


class CampaignStore:
    """The one writer of a campaign's file. Use as a context manager, from one thread.

    A process that is killed loses the trial it was about to add and nothing else. A full disk raises
    UserError and leaves all earlier trials in the file.
    """

    def __init__(self, directory: Path, lock: WriterLock) -> None:
        """Use `create` or `open` instead."""
        self.directory = directory
        self._path = directory / FILE_NAME
        self._lock = lock
        self._connection = open_for_writing(self._path)

    @classmethod
    def create(
        cls,
        directory: Path,
        campaign: CampaignRecord,
        cells: Iterable[Cell],
        contents: Mapping[str, bytes] = MappingProxyType({}),
    ) -> CampaignStore:
        """Start the file of a new campaign in `directory`, which is made if it is missing.

        `contents` are the files that its study takes payload from, by the path that it names them by.

        Raises UserError if it holds a campaign already, is being written, or can't be written.
        """
        _make_directory(directory)
        lock = WriterLock(directory)
        try:
            if (directory / FILE_NAME).exists():
                raise UserError(
                    f"There is a campaign in {directory} already.",
                    advice=f"Go on with `tunnelbench resume {directory}`, or choose another with --out.",
                )

            def fill(connection: sqlite3.Connection) -> None:
                _insert_campaign(connection, campaign)
                for cell in cells:
                    _insert_cell(connection, cell)
                for name, data in contents.items():
                    _insert(connection, "content", {"name": name, "data": data})

            create_database(directory / FILE_NAME, fill)
            return cls(directory, lock)
        except BaseException:
            lock.release()
            raise

    @classmethod
    def open(cls, directory: Path) -> CampaignStore:
        """Go on with the campaign in `directory`: what was under way when it stopped is marked interrupted.

        Raises UserError if there is none, if it is of another version, or if it is being written.
        """
        require_campaign(directory / FILE_NAME)
        lock = WriterLock(directory)
        try:
            store = cls(directory, lock)
        except BaseException:
            lock.release()
            raise
        store._remove_stray_packet_logs()
        with store._transaction() as connection:
            _mark_interrupted(connection, "the orchestrator ended while this instance was up")
            connection.execute("UPDATE campaign SET state = 'running', why = NULL")
        return store

    def __enter__(self) -> CampaignStore:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file and let others write. The campaign's state stays what `finish` made it."""
        self._connection.close()
        self._lock.release()

    def replan(self, plan: Mapping[str, Any]) -> None:
        """Replace the settings of the campaign's plan."""
        with self._transaction() as connection:
            connection.execute("UPDATE campaign SET plan = ?", (_json(plan),))

    @property
    def packets(self) -> Path:
        """The directory for the packet logs of its trials."""
        return self.directory / PACKETS_NAME

    def finished_instances(self) -> list[InstanceRecord]:
        """The instances that need not run again, in the order in which they ran."""
        rows = self._connection.execute(
            f"SELECT campaign_round, position, runtime, runtime_reason, {', '.join(_TREATMENT)} FROM instance"
            " WHERE ended IS NOT NULL AND status <> 'interrupted' ORDER BY id"
        )
        return [
            InstanceRecord(
                campaign_round,
                position,
                Treatment.model_validate(dict(zip(_TREATMENT, levels, strict=True))),
                runtime,
                runtime_reason,
            )
            for campaign_round, position, runtime, runtime_reason, *levels in rows
        ]

    def add_calibrations(self, calibrations: Iterable[CalibrationRecord]) -> None:
        """Add what the load generators themselves can do."""
        with self._transaction() as connection:
            for record in calibrations:
                row = {
                    "host_os": record.host_os,
                    "mtu": record.mtu,
                    **_point_columns(record.point),
                    "metrics": _json(record.metrics),
                    "reason": record.reason,
                }
                _insert(connection, "calibration", row)

    def add_cryptography(self, records: Iterable[CryptographyRecord]) -> None:
        """Add what the cryptography of tunnels takes alone."""
        with self._transaction() as connection:
            for record in records:
                row = _columns(record, without=("treatment",)) | record.treatment.model_dump()
                _insert(connection, "cryptography", row)

    def begin_instance(self, instance: InstanceRecord) -> int:
        """Note that this instance is being brought up now; returns its id."""
        with self._transaction() as connection:
            return _insert_instance(connection, instance)

    def prove(
        self, instance: int, evidence: Evidence, setup_ms: float, handshake_ms: float | None = None
    ) -> None:
        """The witness has accepted the instance, which took `setup_ms` to come up: now it takes trials."""
        self._update_instance(
            instance,
            "UPDATE instance SET status = 'proven', evidence = ?, setup_ms = ?, handshake_ms = ?"
            " WHERE id = ? AND ended IS NULL",
            (_json(evidence), setup_ms, handshake_ms),
        )

    def end_instance(
        self,
        instance: int,
        status: InstanceEnd,
        reason: str | None = None,
        log_tail: str | None = None,
        evidence: Evidence | None = None,
    ) -> None:
        """The instance is down. Give the evidence too where the witness has refused it.

        Raises ValueError if it has ended before, isn't there, or ends as proven without proof.
        """
        if status != "proven" and not reason:
            raise ValueError(f"an instance that is {status} needs a reason")
        self._update_instance(
            instance,
            "UPDATE instance SET status = ?, reason = ?, log_tail = ?, evidence = coalesce(?, evidence),"
            " ended = ? WHERE id = ? AND ended IS NULL AND (status = 'proven' OR ? <> 'proven')",
            (status, reason, log_tail, None if evidence is None else _json(evidence), _now()),
            (status,),
        )

    def add_trial(self, instance: int, trial: TrialRecord) -> int:
        """Add a finished trial with all its numbers in one transaction; returns its id.

        Raises sqlite3.IntegrityError if the instance isn't proven.
        """
        with self._transaction() as connection:
            return _insert_trial(connection, instance, trial)

    def add_rekey(self, instance: int, rekey: RekeyRecord) -> None:
        """Add what new keys cost in a proven instance."""
        with self._transaction() as connection:
            _insert(connection, "rekey", {**_columns(rekey), "instance": instance})

    def add_warning(self, instance: int, warning: WarningRecord) -> None:
        """Add a warning that concerns a whole instance."""
        with self._transaction() as connection:
            _insert(connection, "warning", {**_columns(warning), "instance": instance})

    def add_warm_up(self, warm_up: WarmUpRecord) -> None:
        """Add what a pilot found."""
        with self._transaction() as connection:
            _insert(connection, "warm_up", _columns(warm_up))

    def add_machine_state(self, state: MachineStateRecord) -> None:
        """Add what the machine did before or after the campaign."""
        with self._transaction() as connection:
            _insert(connection, "machine_state", _columns(state))

    def add_settled(self, cells: Iterable[SettledRecord]) -> None:
        """Add cells that are not measured any more; what is known of one already stays as it was."""
        with self._transaction() as connection:
            for cell in cells:
                known = connection.execute(
                    "SELECT 1 FROM settled WHERE instance = ? AND point = ?", (cell.instance, cell.point)
                )
                if known.fetchone() is None:
                    _insert(connection, "settled", _columns(cell))

    def finish(self, state: CampaignState, why: str) -> None:
        """Say how the campaign ended; an instance that is still up is marked interrupted."""
        with self._transaction() as connection:
            _mark_interrupted(connection, why)
            connection.execute("UPDATE campaign SET state = ?, why = ?", (state, why))

    def _remove_stray_packet_logs(self) -> None:
        """Those of a trial that was under way when the writer was killed."""
        listed = {file for (file,) in self._connection.execute("SELECT file FROM packet_log")}
        for path in self.packets.glob("*.parquet"):
            if path.name not in listed:
                path.unlink()

    def _update_instance(
        self, instance: int, statement: str, before: tuple[object, ...], after: tuple[object, ...] = ()
    ) -> None:
        with self._transaction() as connection:
            cursor = connection.execute(statement, (*before, instance, *after))
            if cursor.rowcount != 1:
                raise ValueError(f"instance {instance} can't go there: missing, ended or not proven")

    @contextmanager
    def _transaction(self) -> Generator[sqlite3.Connection]:
        with translated_errors(self._path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise


def _make_directory(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"{directory} can't be made: {error.strerror}.", advice="Choose another directory with --out."
        ) from error


def _mark_interrupted(connection: sqlite3.Connection, reason: str) -> None:
    connection.execute(
        "UPDATE instance SET status = 'interrupted', reason = ?, ended = ? WHERE ended IS NULL",
        (reason, _now()),
    )


def _insert_campaign(connection: sqlite3.Connection, campaign: CampaignRecord) -> None:
    row = {
        **_columns(campaign),
        "created": _utc(campaign.created),
        "product_version": campaign.versions.product,
        "plan": _json(campaign.plan),
        "versions": _json(campaign.versions),
    }
    _insert(connection, "campaign", row)


def _insert_cell(connection: sqlite3.Connection, cell: Cell) -> None:
    row = {
        "key": cell.key,
        **cell.treatment.model_dump(),
        **_point_columns(cell.point),
        "skipped": cell.skipped,
    }
    _insert(connection, "cell", row)


def _insert_instance(connection: sqlite3.Connection, instance: InstanceRecord) -> int:
    row = _columns(instance, without=("treatment",)) | instance.treatment.model_dump()
    return _insert(connection, "instance", {**row, "status": "starting", "started": _now()})


def _insert_trial(connection: sqlite3.Connection, instance: int, trial: TrialRecord) -> int:
    tables = ("metrics", "node_costs", "series", "histograms", "warnings", "packet_logs", "machine")
    row = _columns(trial, without=("point", *tables)) | _point_columns(trial.point)
    identity = _insert(connection, "trial", {**row, "instance": instance, "started": _utc(trial.started)})
    for name, value in trial.metrics.items():
        _insert(connection, "metric", {"trial": identity, "name": name, "value": value})
    for node, cost in trial.node_costs.items():
        for name, value in cost.items():
            _insert(connection, "node_cost", {"trial": identity, "node": node, "field": name, "value": value})
    for name, samples in trial.series.items():
        packed = msgspec.msgpack.encode(samples)
        _insert(connection, "series", {"trial": identity, "name": name, "samples": packed})
    for name, counts in trial.histograms.items():
        _insert(connection, "histogram", {"trial": identity, "name": name, "counts": counts})
    if trial.machine is not None:
        _insert(connection, "machine_state", {**_columns(trial.machine), "trial": identity})
    for log in trial.packet_logs:
        _insert(connection, "packet_log", {**_columns(log), "trial": identity})
    for warning in trial.warnings:
        _insert(connection, "warning", {**_columns(warning), "instance": instance, "trial": identity})
    return identity


def _insert(connection: sqlite3.Connection, table: str, row: Mapping[str, object]) -> int:
    """Insert one row; names of tables and columns come from this module and its records alone."""
    names = ", ".join(row)
    places = ", ".join(f":{name}" for name in row)
    cursor = connection.execute(f"INSERT INTO {table} ({names}) VALUES ({places})", row)
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def _point_columns(point: Point) -> dict[str, object]:
    return point.model_dump()


def _columns(
    record: CampaignRecord
    | InstanceRecord
    | TrialRecord
    | MachineStateRecord
    | WarmUpRecord
    | PacketLogRecord
    | CryptographyRecord
    | RekeyRecord
    | SettledRecord
    | WarningRecord,
    without: Iterable[str] = (),
) -> dict[str, object]:
    names = {column.name for column in fields(record)} - set(without)
    return {name: getattr(record, name) for name in names}


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def _now() -> str:
    return _utc(datetime.now(UTC))
