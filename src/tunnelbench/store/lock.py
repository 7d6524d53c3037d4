"""One writer per campaign: a lock on a file beside it, which ends with the process that holds it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from pathlib import Path

from tunnelbench.errors import UserError

LOCK_NAME = "campaign.lock"


class WriterLock:
    """The right to write the campaign of one directory."""

    def __init__(self, directory: Path) -> None:
        """Raises UserError naming the holder's process if the campaign is being written already."""
        path = directory / LOCK_NAME
        try:
            self._file = path.open("a+", encoding="ascii")
        except OSError as error:
            raise _not_writable(path, error) from error
        try:
            fcntl.fcntl(self._file, fcntl.F_OFD_SETLK, _whole_file(fcntl.F_WRLCK))
            self._file.truncate(0)
            self._file.write(f"{os.getpid()}\n")
            self._file.flush()
        except BlockingIOError as error:
            self._file.seek(0)
            holder = self._file.read().strip()
            self._file.close()
            raise UserError(
                f"The campaign in {directory} is being written by process {holder or 'unknown'}.",
                advice="Wait until it has ended, or choose another directory with --out.",
            ) from error
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.close()
            raise _not_writable(path, error) from error

    def release(self) -> None:
        """Let others write; harmless if done twice."""
        self._file.close()


def _not_writable(path: Path, error: OSError) -> UserError:
    return UserError(
        f"{path} can't be written: {error.strerror}.",
        advice="Mend that, or choose another directory with --out.",
    )


def is_being_written(directory: Path) -> bool:
    """Whether some process holds the lock now; looks without taking it, so no writer is kept out."""
    try:
        with (directory / LOCK_NAME).open("rb") as file:
            answer = fcntl.fcntl(file, fcntl.F_OFD_GETLK, _whole_file(fcntl.F_WRLCK))
    except FileNotFoundError:
        return False
    return struct.unpack(_LAYOUT, answer)[0] != fcntl.F_UNLCK


# Locks of an open file description (fcntl(2), Linux): two stores in one process exclude each other too, and
# closing another descriptor of the file, as is_being_written does, doesn't drop them as it would with lockf.
_LAYOUT = "hhqqi0q"


def _whole_file(kind: int) -> bytes:
    return struct.pack(_LAYOUT, kind, os.SEEK_SET, 0, 0, 0)
