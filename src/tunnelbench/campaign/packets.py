"""Brings the packet logs of a trial from the nodes to the campaign's directory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars

from tunnelbench.errors import UserError
from tunnelbench.load.base import LogEnd, NodeFile
from tunnelbench.store.model import PacketLogRecord, WarningRecord


@dataclass(frozen=True)
class PacketFiles:
    """The packet logs of one instance, in the directory of its campaign."""

    directory: Path
    instance: int

    async def fetch(self, position: int, logs: Mapping[LogEnd, NodeFile]) -> list[PacketLogRecord]:
        """Moves the logs of the trial at `position` here; raises NodeError or UserError where it can't."""
        if logs:
            self._make_directory()
        records: list[PacketLogRecord] = []
        for end, log in logs.items():
            path = self._path(position, end)
            size = await log.node.fetch_file(log.path, path)
            records.append(PacketLogRecord(end, path.name, size))
        return records

    def doubts(self, records: Sequence[PacketLogRecord]) -> Iterator[WarningRecord]:
        """What is to be said of logs that lack packets."""
        for record in records:
            metadata = polars.read_parquet_metadata(self.directory / record.file)
            dropped = int(metadata["tunnelbench.dropped"])
            if dropped > 0:
                yield WarningRecord(
                    "packet-log-incomplete",
                    f"{dropped} packets are missing in the {record.written_by}'s packet log",
                    "The node could not write them as fast as they came: lower the rate.",
                )

    def remove(self, position: int) -> None:
        """Removes what there is of the logs of the trial at `position`."""
        for path in self.directory.glob(f"{self._stem(position)}-*.parquet"):
            path.unlink()

    def _make_directory(self) -> None:
        try:
            self.directory.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.directory} can't be made: {error.strerror}.") from error

    def _path(self, position: int, end: LogEnd) -> Path:
        return self.directory / f"{self._stem(position)}-{end}.parquet"

    def _stem(self, position: int) -> str:
        return f"{self.instance:05}-{position:04}"
