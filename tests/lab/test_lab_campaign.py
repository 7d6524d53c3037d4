"""Campaigns in real labs: measured, interrupted, killed, and with daemons that die."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from lab_processes import descendants, survivors

from tunnelbench.campaign.campaign import Wish, resume, start
from tunnelbench.campaign.observer import Silent
from tunnelbench.errors import UserError
from tunnelbench.lab.image import find
from tunnelbench.plan.rounds import PlannedInstance
from tunnelbench.store.read import CampaignData

pytestmark = pytest.mark.lab

STUDY = """
[study]
id = "test"
title = "Test"
question = "Does it run?"

[factors]
tunnel = ["open", "openvpn/aes-128-gcm"]
transport = ["tcp", "udp"]
rate = ["5 Mbit/s"]

[method]
rounds = 2
trial = "1.2 s"
warm_up = "0.2 s"
cool_down = "0.1 s"
"""


SEARCH = """
[method.capacity]
loss_goal = "50 %"
trial = "300 ms"
trials = 1
highest = "20 Mbit/s"
repeats = 1
"""


def name_of(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except FileNotFoundError:
        return ""


async def test_a_campaign_measures_what_it_planned(tmp_path: Path) -> None:
    why = await start(STUDY, "test.toml", tmp_path / "out", Wish(rounds=1), Silent())
    assert why == "the one round is done"
    with CampaignData(tmp_path / "out") as data:
        assert data.campaign().state == "finished"
        instances = data.instances()
        trials = data.trials()
        costs = data.node_costs()
        calibrations = data.calibrations()
    assert [(record.point.transport, record.reason) for record in calibrations] == [
        ("tcp", None),
        ("udp", None),
        ("udp", None),
    ]
    assert all(record.metrics["throughput"] > 0 for record in calibrations)
    assert instances["status"].to_list() == ["proven"] * 2
    assert (instances["setup_ms"] > 0).all()
    throughput = trials.filter(pl.col("metric") == "throughput")
    assert throughput.height == 4
    udp = throughput.filter(pl.col("transport") == "udp")["value"].to_list()
    # What a busy machine makes the sender late with is left out.
    assert udp == [pytest.approx(5.0, rel=0.3)] * 2
    assert max(udp) < 5.05
    overhead = trials.filter((pl.col("metric") == "wire_overhead") & (pl.col("transport") == "udp"))
    plain = overhead.filter(pl.col("vpn") == "open")["value"].item()
    assert plain == pytest.approx((1400 + 8 + 20 + 14) / 1400, rel=0.01)
    assert overhead.filter(pl.col("vpn") == "openvpn")["value"].item() > plain
    assert {"host1", "gw1", "gw2", "host2", "machine"} <= set(costs["node"].to_list())


async def test_a_campaign_searches_for_capacity_and_finds_the_warm_up(tmp_path: Path) -> None:
    study = STUDY.replace(', "openvpn/aes-128-gcm"', "").replace('"5 Mbit/s"', '"capacity"')
    study = study.replace('"0.2 s"', '"auto"') + SEARCH
    await start(study, "test.toml", tmp_path / "out", Wish(rounds=1), Silent())
    with CampaignData(tmp_path / "out") as data:
        trials = data.trials().filter(pl.col("transport") == "udp")
        found = dict(trials.select("metric", "value").iter_rows())
        course = data.series(trials["trial"][0])
        warm_ups = {record.point.split()[0]: record for record in data.warm_ups()}
        states = data.machine_states()
        warnings = data.warnings()["kind"].to_list()
    # Plain IP carries the little that is asked for at most, on any machine.
    assert found["capacity"] == 20.0
    assert found["capacity_pps"] == pytest.approx(20e6 / 8 / 1400)
    assert found["capacity_trials"] == len(course["search_rate"]) == 2
    assert found["offered"] == pytest.approx(20.0, rel=0.3)
    assert "capacity_upper" not in found
    assert "capacity-not-reached" in warnings
    assert warm_ups["tcp"].series == "throughput"
    assert 0 <= warm_ups["tcp"].seconds <= 0.6
    assert warm_ups["udp"].series is None
    assert states["moment"].to_list() == ["before", "during", "during", "after"]


def decoded(received: Path, sent: Path) -> dict[str, Any]:
    program = str(files("tunnelbench") / "bin" / "tbnode")
    command = [program, "decode", str(received), "--sent", str(sent), "--json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


async def test_packet_logs_lie_beside_the_campaign_and_say_what_the_store_says(tmp_path: Path) -> None:
    study = STUDY.replace(', "openvpn/aes-128-gcm"', "") + "packet_log = true\n"
    out = tmp_path / "out"
    await start(study, "test.toml", out, Wish(rounds=1), Silent())
    with CampaignData(out) as data:
        listed = data.packet_logs()
        trials = data.trials().filter(pl.col("transport") == "udp")
    assert listed["written_by"].to_list() == ["sender", "receiver"]
    assert listed["trial"].unique().to_list() == trials["trial"].unique().to_list()
    sent, received = (out / "campaign.packets" / name for name in listed["file"])
    assert [path.stat().st_size for path in (sent, received)] == listed["bytes"].to_list()

    departures, arrivals = pl.read_parquet(sent), pl.read_parquet(received)
    nanoseconds = pl.Datetime("ns")
    assert arrivals.schema == {
        "flow": pl.UInt16,
        "sequence": pl.UInt64,
        "intended": nanoseconds,
        "sent": nanoseconds,
        "received": nanoseconds,
        "bytes": pl.UInt32,
    }
    assert departures["received"].is_null().all()
    assert departures["sequence"].to_list() == list(range(departures.height))
    # 5 Mbit/s in datagrams of 1400 bytes, in warm-up and cool-down too.
    assert departures.height == pytest.approx(5e6 / 8 / 1400 * 1.2, rel=0.3)
    assert arrivals["bytes"].unique().to_list() == [1400]
    assert (arrivals["received"] >= arrivals["sent"]).all()
    assert (arrivals["sent"] >= arrivals["intended"]).all()

    metrics = dict(trials.select("metric", "value").iter_rows())
    log = decoded(received, sent)["logs"][0]
    assert (log["records"], log["complete"], log["dropped_records"]) == (arrivals.height, True, 0)
    (flow,) = log["flows"]
    assert flow["report"]["delay"]["p50"] / 1e6 == metrics["latency_p50"]
    assert flow["report"]["jitter_mean"] / 1e6 == pytest.approx(metrics["jitter"])
    assert 1 - flow["summary"]["packets"] / flow["sent"] == pytest.approx(metrics["loss"])


async def test_a_daemon_that_dies_while_measuring_gives_no_number(tmp_path: Path) -> None:
    class Killer(Silent):
        def trial_began(self, instance: PlannedInstance, position: int) -> None:
            if instance.treatment.vpn == "openvpn":
                asyncio.get_running_loop().call_later(0.6, self.kill)

        def kill(self) -> None:
            victim = next(pid for pid in descendants(os.getpid()) if name_of(pid) == "openvpn")
            os.kill(victim, signal.SIGKILL)

    await start(STUDY, "test.toml", tmp_path / "out", Wish(rounds=1), Killer())
    with CampaignData(tmp_path / "out") as data:
        instance = data.instances().filter(pl.col("vpn") == "openvpn")
        void = data.void_trials()
        numbers = data.trials().filter((pl.col("vpn") == "openvpn") & pl.col("value").is_not_null())
    assert instance["status"].to_list() == ["failed"]
    assert "openvpn died while measuring" in instance["reason"].item()
    assert void.height == 1
    assert "openvpn died while measuring" in void["reason"].item()
    assert numbers.is_empty()


async def test_an_interrupted_campaign_keeps_its_trials_and_goes_on(tmp_path: Path) -> None:
    class Interrupter(Silent):
        def __init__(self) -> None:
            self.begun = 0

        def instance_began(self, instance: PlannedInstance) -> None:
            self.begun += 1
            if self.begun == 2:
                task = asyncio.current_task()
                assert task is not None
                task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await start(STUDY, "test.toml", tmp_path / "out", Wish(rounds=1), Interrupter())
    with CampaignData(tmp_path / "out") as data:
        assert data.campaign().state == "interrupted"
        kept = data.instances().filter(pl.col("status") == "proven").height
    assert kept == 1
    await resume(tmp_path / "out", Silent())
    with CampaignData(tmp_path / "out") as data:
        assert data.campaign().state == "finished"
        assert data.instances().filter(pl.col("status") == "proven").height == 2

    await resume(tmp_path / "out", Silent(), rounds=2)
    with CampaignData(tmp_path / "out") as data:
        assert data.campaign().plan["rounds"] == 2
        assert data.instances().filter(pl.col("status") == "proven").height == 4
    with pytest.raises(UserError, match="has 2 rounds already"):
        await resume(tmp_path / "out", Silent(), rounds=1)


def test_a_killed_campaign_leaves_nothing_and_goes_on(tmp_path: Path) -> None:
    study = tmp_path / "test.toml"
    study.write_text(STUDY)
    command = [sys.executable, "-m", "tunnelbench.cli", "run", str(study), "--out", str(tmp_path / "out")]
    orchestrator = subprocess.Popen(
        [*command, "--rounds", "1"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    database = tmp_path / "out" / "campaign.sqlite"
    try:
        wait_for_trials(database, orchestrator)
        family = descendants(orchestrator.pid)
        assert family
    finally:
        orchestrator.kill()
        orchestrator.wait()
    assert survivors(family) == []

    with CampaignData(tmp_path / "out") as data:
        kept = data.trials()["trial"].n_unique()
    assert kept >= 1
    asyncio.run(resume(tmp_path / "out", Silent()))
    with CampaignData(tmp_path / "out") as data:
        assert data.campaign().state == "finished"
        assert data.trials()["trial"].n_unique() >= max(kept, 4)


def wait_for_trials(database: Path, orchestrator: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        assert orchestrator.poll() is None, "the campaign ended before it could be killed"
        if database.exists():
            with sqlite3.connect(f"file:{database}?mode=ro", uri=True) as connection:
                if connection.execute("SELECT count(*) FROM trial").fetchone()[0] >= 1:
                    return
        time.sleep(0.05)
    pytest.fail("no trial within five minutes")


async def test_what_cannot_run_is_skipped_with_its_reason(tmp_path: Path) -> None:
    study = STUDY.replace("openvpn/aes-128-gcm", "ipip")
    await start(study, "test.toml", tmp_path / "out", Wish(rounds=1, runtime="namespace"), Silent())
    with CampaignData(tmp_path / "out") as data:
        skipped = data.instances().filter(pl.col("status") == "skipped")
    if skipped.is_empty():
        pytest.skip("this machine's kernel has IPIP links")
    assert skipped["vpn"].to_list() == ["ipip"]
    assert "lacks IPIP links" in skipped["reason"].item()


async def test_a_missing_image_names_the_command_that_builds_it(tmp_path: Path) -> None:
    study = STUDY.replace('transport = ["tcp", "udp"]', 'transport = ["tcp"]\ngateway_os = ["trixie"]')
    try:
        find("trixie")
    except UserError:
        with pytest.raises(UserError, match="image trixie is not built") as caught:
            await start(study, "test.toml", tmp_path / "out", Wish(), Silent())
        assert "tunnelbench image build trixie" in str(caught.value)
        return
    pytest.skip("the image trixie is built here")
