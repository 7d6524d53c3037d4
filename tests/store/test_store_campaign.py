"""The life of a campaign's file: begun, gone on with, finished, and refused where it must be."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from store_records import CAMPAIGN, EVIDENCE, TCP, add_proven, create, instance, trial, void_trial

from tunnelbench.errors import UserError
from tunnelbench.store.database import FILE_NAME
from tunnelbench.store.lock import is_being_written
from tunnelbench.store.model import PacketLogRecord
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore


def test_finished_instances_need_not_run_again(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        store.end_instance(add_proven(store, instance("open")), "proven")
        store.end_instance(store.begin_instance(instance("gre")), "failed", "no interface")
        add_proven(store, instance("ipip"))
    with CampaignStore.open(tmp_path) as store:
        assert store.finished_instances() == [instance("open"), instance("gre")]


def test_an_interrupted_instance_counts_until_it_is_proven_again(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        store.add_trial(add_proven(store, instance()), trial(throughput=1.0))
    with CampaignStore.open(tmp_path) as store:
        assert _throughputs(tmp_path) == [1.0]
        store.begin_instance(instance())
        assert _throughputs(tmp_path) == [1.0]
    with CampaignStore.open(tmp_path) as store:
        again = add_proven(store, instance())
        store.add_trial(again, trial(throughput=2.0))
        store.end_instance(again, "proven")
        assert _throughputs(tmp_path) == [2.0]
        with CampaignData(tmp_path) as data:
            rows = data.instances().select("status", "superseded").rows()
            assert rows == [("interrupted", True), ("interrupted", True), ("proven", False)]
            assert len(data.warnings()) == 1
            assert len(data.node_costs()) == 2


def test_the_same_treatment_in_another_round_supersedes_nothing(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        store.add_trial(add_proven(store, instance()), trial(throughput=1.0))
    with CampaignStore.open(tmp_path) as store:
        store.add_trial(add_proven(store, instance(campaign_round=2)), trial(throughput=2.0))
        assert _throughputs(tmp_path) == [1.0, 2.0]


def _throughputs(directory: Path) -> list[float]:
    with CampaignData(directory) as data:
        return data.trials().filter(metric="throughput")["value"].to_list()


def test_an_empty_level_is_not_a_missing_one(tmp_path: Path) -> None:
    points = [TCP.model_copy(update={"congestion_control": level}) for level in (None, "", "a'|'b")]
    with create(tmp_path) as store:
        identity = add_proven(store, instance())
        for position, point in enumerate(points):
            store.add_trial(identity, replace(trial(position), point=point))
    with CampaignData(tmp_path) as data:
        rows = data.trials().filter(metric="throughput").sort("trial")
        assert rows["congestion_control"].to_list() == [None, "", "a'|'b"]


def test_no_proof_no_number(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        identity = store.begin_instance(instance())
        with pytest.raises(sqlite3.IntegrityError, match="proven"):
            store.add_trial(identity, trial())
        store.end_instance(identity, "refused", "the marker was readable")
        with pytest.raises(sqlite3.IntegrityError, match="proven"):
            store.add_trial(identity, trial())


def test_a_trial_is_added_whole_or_not_at_all(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        identity = add_proven(store, instance())
        broken = trial()
        object.__setattr__(broken, "histograms", {"latency": object()})
        with pytest.raises(sqlite3.Error):
            store.add_trial(identity, broken)
        with CampaignData(tmp_path) as data:
            assert data.trials().is_empty()
        store.add_trial(identity, trial())


def test_an_instance_ends_once_and_as_proven_only_with_proof(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        identity = store.begin_instance(instance())
        with pytest.raises(ValueError, match="proven"):
            store.end_instance(identity, "proven")
        with pytest.raises(ValueError, match="reason"):
            store.end_instance(identity, "failed")
        store.end_instance(identity, "failed", "never came up")
        with pytest.raises(ValueError, match="ended"):
            store.end_instance(identity, "failed", "twice")
        with pytest.raises(ValueError, match="ended"):
            store.prove(identity, EVIDENCE, 1.0)
        with pytest.raises(ValueError, match="missing"):
            store.end_instance(99, "failed", "never was")


def test_the_state_of_a_campaign(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        assert _state(tmp_path) == ("running", None)
        add_proven(store, instance())
        store.finish("interrupted", "stopped with Ctrl-C")
        assert _state(tmp_path) == ("interrupted", "stopped with Ctrl-C")
        with CampaignData(tmp_path) as data:
            assert data.instances()["reason"].to_list() == ["stopped with Ctrl-C"]
    with CampaignStore.open(tmp_path) as store:
        assert _state(tmp_path) == ("running", None)
        store.finish("finished", "all rounds are done")
    assert _state(tmp_path) == ("finished", "all rounds are done")


def test_a_campaign_whose_writer_is_gone_is_not_running(tmp_path: Path) -> None:
    create(tmp_path).close()
    state, why = _state(tmp_path)
    assert state == "interrupted"
    assert why


def _state(directory: Path) -> tuple[str, str | None]:
    with CampaignData(directory) as data:
        return data.campaign().state, data.campaign().why


def test_only_one_process_writes(tmp_path: Path) -> None:
    with create(tmp_path):
        assert is_being_written(tmp_path)
        with pytest.raises(UserError, match=str(os.getpid())):
            CampaignStore.open(tmp_path)
        assert is_being_written(tmp_path)
    assert not is_being_written(tmp_path)
    CampaignStore.open(tmp_path).close()


def test_reading_does_not_release_the_writers_lock(tmp_path: Path) -> None:
    with create(tmp_path):
        with CampaignData(tmp_path) as data:
            assert data.campaign().state == "running"
        with pytest.raises(UserError, match="being written"):
            CampaignStore.open(tmp_path)


def test_a_reader_sees_one_moment(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        identity = add_proven(store, instance())
        store.add_trial(identity, trial())
        with CampaignData(tmp_path) as before:
            store.add_trial(identity, trial(1))
            assert before.trials()["trial"].n_unique() == 1
        with CampaignData(tmp_path) as after:
            assert after.trials()["trial"].n_unique() == 2


def test_a_campaign_is_not_overwritten(tmp_path: Path) -> None:
    create(tmp_path).close()
    with pytest.raises(UserError, match="already"):
        create(tmp_path)


def test_a_missing_campaign(tmp_path: Path) -> None:
    for opened in (CampaignStore.open, CampaignData):
        with pytest.raises(UserError, match="no campaign"):
            opened(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_another_version(tmp_path: Path) -> None:
    create(tmp_path).close()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    for opened in (CampaignStore.open, CampaignData):
        with pytest.raises(UserError, match="format 99"):
            opened(tmp_path)
    assert not is_being_written(tmp_path)


def test_a_file_that_is_not_ours(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"not a database at all" * 100)
    for opened in (CampaignStore.open, CampaignData):
        with pytest.raises(UserError, match="not a campaign"):
            opened(tmp_path)
    (tmp_path / FILE_NAME).unlink()
    with sqlite3.connect(tmp_path / FILE_NAME) as connection:
        connection.execute("CREATE TABLE somebody_elses (value)")
    connection.close()
    with pytest.raises(UserError, match="not a campaign"):
        CampaignData(tmp_path)


def test_a_campaign_file_alone_can_be_read(tmp_path: Path) -> None:
    with create(tmp_path / "original") as store:
        store.add_trial(add_proven(store, instance()), trial())
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / FILE_NAME).write_bytes((tmp_path / "original" / FILE_NAME).read_bytes())
    with CampaignData(copy) as data:
        assert data.campaign().id == CAMPAIGN.id
        assert len(data.trials()) == 2


def test_reading_leaves_nothing_behind_and_changes_nothing(tmp_path: Path) -> None:
    create(tmp_path).close()
    before = (tmp_path / FILE_NAME).read_bytes()
    files = sorted(tmp_path.iterdir())
    with CampaignData(tmp_path) as data:
        data.trials()
    assert sorted(tmp_path.iterdir()) == files
    assert (tmp_path / FILE_NAME).read_bytes() == before


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="can't be made"):
        create(tmp_path / "file" / "campaign")


def test_packet_logs_are_listed_and_strays_removed(tmp_path: Path) -> None:
    log = PacketLogRecord("receiver", "00001-0000-receiver.parquet", 3)
    with create(tmp_path) as store:
        store.packets.mkdir()
        for name in (log.file, "00001-0001-receiver.parquet"):
            (store.packets / name).write_bytes(b"PAR")
        proven = add_proven(store, instance())
        identity = store.add_trial(proven, replace(trial(), packet_logs=[log]))
    with CampaignStore.open(tmp_path) as store:
        assert [path.name for path in store.packets.iterdir()] == [log.file]
    with CampaignData(tmp_path) as data:
        listed = data.packet_logs().select("trial", "written_by", "file", "bytes").rows()
    assert listed == [(identity, log.written_by, log.file, log.bytes)]


def test_a_void_trial_has_no_packet_log() -> None:
    with pytest.raises(ValueError, match="void"):
        replace(void_trial(), packet_logs=[PacketLogRecord("sender", "x.parquet", 1)])
