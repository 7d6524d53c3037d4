"""Warm-ups found by pilots, with trials that are made up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tunnelbench.campaign import warming
from tunnelbench.campaign.observer import Silent
from tunnelbench.campaign.trial import Bench
from tunnelbench.plan.rounds import PlannedInstance
from tunnelbench.store.model import CampaignRecord, InstanceRecord, TrialRecord, Versions, WarmUpRecord
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import CAPACITY
from tunnelbench.study.treatment import Treatment

TREATMENT = Treatment(vpn="gre", suite="none", gateway_os="bookworm", host_os="bookworm", mtu=1500)
TCP = Point(transport="tcp", ip="ipv4", payload_bytes=1000, rate=None, direction="forward", load="engine")
UDP = Point(transport="udp", ip="ipv4", payload_bytes=1000, rate=CAPACITY, direction="forward", load="engine")
INSTANCE = PlannedInstance(
    campaign_round=1, position=0, treatment=TREATMENT, runtime="namespace", points=(TCP,)
)
RECORD = CampaignRecord("1", "s", "t", "q", "", 1, {}, Versions("0", "0", "invented"))
AUTO = Method.model_validate({"warm_up": "auto", "trial": "4 s"})
NOTHING: Any = None
BENCH = Bench(NOTHING, NOTHING)
USUAL = WarmUpRecord("i", "p", "n", 0.5, None, is_settled=True)

RISING = [100.0, 200.0, 300.0, 400.0, 500.0] + [1000.0 + number % 3 for number in range(35)]
FLAT = [1000.0 + number % 3 for number in range(40)]
GROWING = [float(number) for number in range(1, 41)]


class Pilot:
    """Stands in for a trial, and counts."""

    def __init__(self, series: Sequence[float] | None) -> None:
        self.series = series
        self.methods: list[Method] = []

    async def __call__(self, bench: Bench, point: Point, position: int, method: Method) -> TrialRecord:
        self.methods.append(method)
        now = datetime.now(UTC)
        if self.series is None:
            return TrialRecord(position, point, now, 1.0, status="void", reason="a daemon died")
        metrics, series = {"throughput": 1.0}, {"throughput": self.series}
        return TrialRecord(position, point, now, 1.0, metrics=metrics, series=series)


async def found(
    directory: Path, pilot: Pilot, monkeypatch: pytest.MonkeyPatch, method: Method = AUTO, point: Point = TCP
) -> Method:
    monkeypatch.setattr(warming, "run_trial", pilot)
    exists = (directory / "campaign.sqlite").exists()
    with CampaignStore.open(directory) if exists else CampaignStore.create(directory, RECORD, ()) as store:
        identity = store.begin_instance(InstanceRecord(1, 0, TREATMENT, "namespace"))
        instance = INSTANCE.model_copy(update={"points": (point,)})
        return await warming.method_for(BENCH, instance, 0, method, store, identity, Silent())


async def test_what_a_study_says_is_not_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pilot, method = Pilot(RISING), Method()
    assert await found(tmp_path, pilot, monkeypatch, method) is method
    assert pilot.methods == []


async def test_a_pilot_is_a_whole_trial_and_its_slow_start_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pilot = Pilot(RISING)
    method = await found(tmp_path, pilot, monkeypatch)
    assert (method.warm_up, method.trial, method.window) == (0.5, 4.0, pytest.approx(3.3))
    assert [(it.window, it.warm_up_seconds, it.cool_down) for it in pilot.methods] == [(4.0, 0.0, 0.0)]


async def test_what_was_found_is_kept_and_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Pilot(FLAT), Pilot(RISING)
    assert (await found(tmp_path, first, monkeypatch)).warm_up == 0.0
    assert (await found(tmp_path, second, monkeypatch)).warm_up == 0.0
    assert (len(first.methods), len(second.methods)) == (1, 0)
    with CampaignData(tmp_path) as data:
        (record,) = data.warm_ups()
    assert record == WarmUpRecord(
        INSTANCE.key,
        TCP.key,
        "gre, TCP over IPv4, 1000-byte writes, forward, engine",
        0.0,
        "throughput",
        is_settled=True,
    )


async def test_a_void_pilot_leaves_it_to_the_next_instance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await found(tmp_path, Pilot(None), monkeypatch)).warm_up == 0.5
    assert (await found(tmp_path, Pilot(FLAT), monkeypatch)).warm_up == 0.0


async def test_what_never_settles_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    method = await found(tmp_path, Pilot(GROWING), monkeypatch)
    assert method.warm_up == 2.0
    with CampaignData(tmp_path) as data:
        assert data.warnings()["kind"].to_list() == ["never-settles"]
        assert not data.warm_ups()[0].is_settled


async def test_a_search_for_capacity_has_no_pilot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pilot = Pilot(RISING)
    assert (await found(tmp_path, pilot, monkeypatch, point=UDP)).warm_up == 0.5
    assert pilot.methods == []


@pytest.mark.parametrize(
    ("series", "seconds"),
    [
        ({"throughput_forward": FLAT, "throughput_reverse": RISING}, 0.5),
        ({"latency": [math.nan, math.nan, *FLAT[2:]]}, 0.5),
        ({}, 0.5),
    ],
)
def test_the_longest_warm_up_of_both_directions_counts(
    series: Mapping[str, Sequence[float]], seconds: float
) -> None:
    assert warming.warm_up_of(USUAL, series, "throughput").seconds == seconds


def test_a_fixed_rate_warms_up_in_its_delay() -> None:
    delay = [math.nan, 9.0, 8.0, *[1.0 + number % 3 / 100 for number in range(37)]]
    record = warming.warm_up_of(USUAL, {"throughput": FLAT, "latency": delay}, "delay")
    assert (record.series, record.seconds) == ("latency", pytest.approx(0.3))


@pytest.mark.parametrize(("trial", "is_refused"), [("0.3 s", True), ("4 s", False)])
def test_half_a_trial_may_be_cut_off(trial: str, is_refused: bool) -> None:
    wanted = {"warm_up": "auto", "trial": trial, "cool_down": "0.2 s"}
    if is_refused:
        with pytest.raises(ValueError, match="leaves nothing to measure"):
            Method.model_validate(wanted)
    else:
        assert Method.model_validate(wanted).warm_up == "auto"
