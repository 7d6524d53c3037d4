"""Packet logs on their way from the nodes into a campaign's directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import polars
import pytest

from tunnelbench.campaign.packets import PacketFiles
from tunnelbench.lab.connection import NodeError
from tunnelbench.load.base import LogEnd, NodeFile


@dataclass
class FakeNode:
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    async def fetch_file(self, path: str, target: Path) -> int:
        if path not in self.files:
            raise NodeError(f"{path} could not be read")
        return put(target, self.files.pop(path))


def put(target: Path, data: bytes) -> int:
    return target.write_bytes(data)


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def logs(*nodes: FakeNode) -> dict[LogEnd, NodeFile]:
    ends: tuple[LogEnd, ...] = ("sender", "receiver")
    return {end: NodeFile(node, "/run/log") for end, node in zip(ends, nodes, strict=True)}


def a_log(folder: Path, dropped: int) -> bytes:
    path = folder / "made.parquet"
    frame = polars.DataFrame({"flow": [0]})
    frame.write_parquet(path, metadata={"tunnelbench.dropped": str(dropped)})
    return path.read_bytes()


async def test_logs_are_fetched_and_named_by_their_trial(tmp_path: Path) -> None:
    files = PacketFiles(tmp_path / "campaign.packets", 7)
    nodes = [FakeNode(files={"/run/log": a_log(tmp_path, dropped)}) for dropped in (0, 12)]
    records = await files.fetch(3, logs(*nodes))
    names = ["00007-0003-sender.parquet", "00007-0003-receiver.parquet"]
    assert [(record.written_by, record.file) for record in records] == list(
        zip(("sender", "receiver"), names, strict=True)
    )
    assert [(files.directory / name).stat().st_size for name in names] == [log.bytes for log in records]
    assert files.directory.stat().st_mode & 0o777 == 0o700
    (doubt,) = files.doubts(records)
    assert doubt.kind == "packet-log-incomplete"
    assert doubt.message.startswith("12 packets are missing in the receiver's")


async def test_what_was_fetched_of_a_void_trial_is_removed(tmp_path: Path) -> None:
    files = PacketFiles(tmp_path, 1)
    kept = await files.fetch(0, {"sender": NodeFile(FakeNode(files={"/run/log": b"kept"}), "/run/log")})
    with pytest.raises(NodeError):
        await files.fetch(1, logs(FakeNode(files={"/run/log": b"first"}), FakeNode()))
    files.remove(1)
    assert names_in(tmp_path) == [kept[0].file]


async def test_a_trial_without_logs_makes_no_directory(tmp_path: Path) -> None:
    files = PacketFiles(tmp_path / "campaign.packets", 1)
    assert await files.fetch(0, {}) == []
    assert not files.directory.exists()
