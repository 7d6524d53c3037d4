"""The file of a campaign as a database: its name, its identity, and how to open it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from urllib.parse import quote

from tunnelbench.errors import UserError

FILE_NAME = "campaign.sqlite"
PACKETS_NAME = "campaign.packets"
"""The directory with the packet logs, beside the campaign's file."""
SCHEMA_VERSION = 8
APPLICATION_ID = 0x74624E43  # "tbNC", the mark SQLite keeps in the header of the file

_NO_SPACE = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMMAP}


def create_database(path: Path, fill: Callable[[sqlite3.Connection], None]) -> None:
    """Make a campaign file with the rows that `fill` writes. It appears under its name once it is whole."""
    unfinished = path.with_name(path.name + ".new")
    schema = files("tunnelbench.store").joinpath("schema.sql").read_text(encoding="utf-8")
    try:
        with translated_errors(path):
            unfinished.unlink(missing_ok=True)
            connection = sqlite3.connect(unfinished)
            try:
                connection.executescript(schema)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
                fill(connection)
                connection.commit()
                connection.execute("PRAGMA journal_mode = WAL")
            finally:
                connection.close()
        unfinished.rename(path)
    finally:
        unfinished.unlink(missing_ok=True)


def open_for_writing(path: Path) -> sqlite3.Connection:
    """Connect to a campaign file; each commit is on the disk when it returns.

    Raises UserError if there is no such file, or if it isn't a campaign of this version.
    """
    require_campaign(path)
    with translated_errors(path):
        connection = sqlite3.connect(path, isolation_level=None)
        try:
            _check_identity(connection, path)
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            connection.close()
            raise
    return connection


def open_for_reading(path: Path) -> sqlite3.Connection:
    """Connect without changing any row; a writer may be at work at the same time.

    Raises UserError if there is no such file, or if it isn't a campaign of this version.
    """
    require_campaign(path)
    address = f"file:{quote(str(path.absolute()))}?{_reading_mode(path)}"
    with translated_errors(path):
        connection = sqlite3.connect(address, uri=True, isolation_level=None)
        try:
            _check_identity(connection, path)
            connection.execute("PRAGMA query_only = ON")
        except BaseException:
            connection.close()
            raise
    return connection


def _reading_mode(path: Path) -> str:
    """A reader that may write clears away, as the last to close, the files that connections share."""
    if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK):
        return "mode=rw"
    log = path.with_name(path.name + "-wal")
    return "mode=ro" if log.exists() else "mode=ro&immutable=1"


def require_campaign(path: Path) -> None:
    """Raises UserError if there is no such file."""
    if not path.is_file():
        raise UserError(
            f"There is no campaign in {path.parent}: {path.name} is missing.",
            advice="Give the directory that `tunnelbench run --out` wrote.",
        )


def _check_identity(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION_ID:
        raise _not_a_campaign(path)
    if version != SCHEMA_VERSION:
        raise UserError(
            f"{path} was written in format {version}; this version reads format {SCHEMA_VERSION}.",
            advice="Use the version of tunnelbench that wrote the campaign.",
        )


def _not_a_campaign(path: Path) -> UserError:
    return UserError(
        f"{path} is not a campaign file of tunnelbench.",
        advice="Give the directory that `tunnelbench run --out` wrote.",
    )


@contextmanager
def translated_errors(path: Path) -> Generator[None]:
    """Turn what the user can mend (a full disk, a foreign file, no permission) into a UserError."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", None)
        if code in _NO_SPACE:
            raise UserError(
                f"The disk is full: {path} can't grow. All finished trials are kept.",
                advice=f"Free some space there, then go on with `tunnelbench resume {path.parent}`.",
            ) from error
        if code == sqlite3.SQLITE_NOTADB:
            raise _not_a_campaign(path) from error
        if code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM):
            raise UserError(
                f"{path} can't be opened: {error}.",
                advice="Check its permissions, or copy the whole directory to a place that can be written.",
            ) from error
        raise
