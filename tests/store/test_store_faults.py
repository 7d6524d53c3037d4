"""Killed processes and full disks: what was finished stays."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from store_records import add_proven, create, instance, trial

from tunnelbench.errors import UserError
from tunnelbench.store.database import FILE_NAME
from tunnelbench.store.model import TrialRecord
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore

WRITER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from store_records import add_proven, create, instance, trial
store = create(Path(sys.argv[1]))
identity = add_proven(store, instance())
position = 0
while True:
    store.add_trial(identity, trial(position))
    print(position, flush=True)
    position += 1
"""


@pytest.mark.parametrize("trials_before_kill", [1, 20])
def test_kill_keeps_every_finished_trial(tmp_path: Path, trials_before_kill: int) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path), str(Path(__file__).parent)],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert writer.stdout is not None
    with writer, writer.stdout as lines:
        acknowledged = [int(next(lines)) for _ in range(trials_before_kill)]
        writer.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in lines]

    with CampaignData(tmp_path) as data:
        frame = data.trials()
        assert data.campaign().state == "interrupted"
    kept = frame["trial"].n_unique()
    assert kept in (len(acknowledged), len(acknowledged) + 1)
    assert len(frame) == 2 * kept
    with CampaignStore.open(tmp_path) as store:
        assert store.finished_instances() == []
        again = add_proven(store, instance())
        store.add_trial(again, trial())
        store.end_instance(again, "proven")
        store.finish("finished", "done")
    with CampaignData(tmp_path) as data:
        assert data.trials()["trial"].n_unique() == 1
        assert data.instances()["superseded"].to_list() == [True, False]


def big_trial(position: int) -> TrialRecord:
    return replace(trial(position), histograms={"latency": os.urandom(50_000)})


def test_a_file_that_cannot_grow_keeps_its_trials(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        identity = add_proven(store, instance())
        store._connection.execute("PRAGMA max_page_count = 100")  # pyright: ignore[reportPrivateUsage]
        _assert_fills_up(store, identity)
    with CampaignStore.open(tmp_path) as store:
        store.add_trial(add_proven(store, instance()), big_trial(0))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], capture_output=True, check=False
    )
    if mount.returncode != 0:
        pytest.skip("mounting a tmpfs is not permitted here")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_full_disk_keeps_its_trials(tiny_disk: Path) -> None:
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(300_000))
    with create(tiny_disk) as store:
        identity = add_proven(store, instance())
        kept = _assert_fills_up(store, identity)
    ballast.unlink()
    with CampaignStore.open(tiny_disk) as store, CampaignData(tiny_disk) as data:
        assert data.trials()["trial"].n_unique() == kept
        store.add_trial(add_proven(store, instance()), trial())


@pytest.mark.parametrize(("bytes_free", "complaint"), [(0, "No space left"), (20_480, "disk is full")])
def test_a_disk_full_from_the_start(tiny_disk: Path, bytes_free: int, complaint: str) -> None:
    ballast = tiny_disk / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    os.truncate(ballast, ballast.stat().st_size - bytes_free)
    with pytest.raises(UserError, match=complaint):
        create(tiny_disk)
    ballast.unlink()
    create(tiny_disk).close()


def _assert_fills_up(store: CampaignStore, instance_identity: int) -> int:
    kept = 0
    error: UserError | None = None
    while error is None and kept < 100:
        try:
            store.add_trial(instance_identity, big_trial(kept))
            kept += 1
        except UserError as caught:
            error = caught
    assert kept > 0
    assert error is not None
    assert "disk is full" in error.message
    assert str(store.directory / FILE_NAME) in error.message
    with CampaignData(store.directory) as data:
        assert data.trials()["trial"].n_unique() == kept
    return kept


def test_a_write_that_fails_for_another_reason_is_not_hidden(tmp_path: Path) -> None:
    with create(tmp_path) as store, pytest.raises(sqlite3.IntegrityError):
        store.add_trial(4711, trial())


def test_a_read_only_disk_is_read_in_full_or_not_at_all(tiny_disk: Path) -> None:
    whole, torn = tiny_disk / "whole", tiny_disk / "torn"
    torn.mkdir()
    with create(whole) as store:
        store.add_trial(add_proven(store, instance()), trial())
        for name in (FILE_NAME, f"{FILE_NAME}-wal"):
            (torn / name).write_bytes((whole / name).read_bytes())
    subprocess.run(["mount", "-o", "remount,ro", str(tiny_disk)], check=True)
    with CampaignData(whole) as data:
        assert len(data.trials()) == 2
    with pytest.raises(UserError, match="can't be opened"):
        CampaignData(torn)
