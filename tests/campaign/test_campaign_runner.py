"""Runs plans with instances that are drawn instead of measured: order, stop rules, going on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from tunnelbench.campaign import runner
from tunnelbench.campaign.course import Course
from tunnelbench.campaign.instance import End
from tunnelbench.campaign.observer import Silent
from tunnelbench.plan.rounds import PlannedInstance, make_plan
from tunnelbench.store.model import CampaignRecord, TrialRecord, Versions
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell
from tunnelbench.study.model import Method, Socket
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.witness.evidence import Evidence

OPEN, CALM, WILD = (
    Treatment.model_validate({"vpn": vpn, "suite": "none", "mtu": 1500, **OS})
    for OS in [
        {name: "bookworm" for name in Treatment.model_fields if name in ("image", "gateway_os", "host_os")}
    ]
    for vpn in ("open", "gre", "ipip")
)
SPREAD = {OPEN: 0.001, CALM: 0.001, WILD: 0.1}
TCP = Point(transport="tcp", ip="ipv4", payload_bytes=1000, rate=None, direction="forward", load="engine")
EVIDENCE = Evidence({"gre": 1}, True, True, True, "none", "none")
RECORD = CampaignRecord("1", "s", "t", "q", "", 1, {}, Versions("0", "0", "invented"))


class NoLabs:
    """Labs that nobody looks into."""

    async def get(self, key: object) -> None: ...
    async def settle(self, key: object) -> Sequence[str]:
        return ()

    async def discard(self, key: object) -> None: ...


class StoppedError(Exception):
    pass


class Drawn:
    """Stands in for `run_instance`: a number drawn for each trial, until it is to break off."""

    def __init__(self, breaks_after: int | None = None) -> None:
        self.run: list[tuple[int, str]] = []
        self.breaks_after = breaks_after

    async def __call__(
        self, instance: PlannedInstance, lab: object, store: CampaignStore, identity: int, *_: object
    ) -> End:
        if len(self.run) == self.breaks_after:
            raise StoppedError
        self.run.append((instance.campaign_round, instance.treatment.vpn))
        store.prove(identity, EVIDENCE, 1.0)
        for position, point in enumerate(instance.points):
            random = Random(f"{instance.campaign_round} {instance.key} {point.key}")
            value = 1000 * random.gauss(1, SPREAD[instance.treatment])
            metrics = {"throughput": value}
            store.add_trial(identity, TrialRecord(position, point, datetime.now(UTC), 1.0, metrics=metrics))
        return End("proven", all_went_well=True)


async def run(directory: Path, method: Method, drawn: Drawn, monkeypatch: pytest.MonkeyPatch) -> str:
    cells = [Cell(treatment=treatment, point=TCP) for treatment in SPREAD]
    plan = make_plan(cells, method.rounds, 1, dict.fromkeys(SPREAD, "namespace"))
    monkeypatch.setattr(runner, "run_instance", drawn)
    exists = (directory / "campaign.sqlite").exists()
    with CampaignStore.open(directory) if exists else CampaignStore.create(directory, RECORD, cells) as store:
        course = Course(plan, method, Socket(), {}, {})
        return await runner.run_plan(course, NoLabs(), store, Silent())  # pyright: ignore[reportArgumentType]


INTERVAL = Method(stop="interval", rounds=12, rounds_min=6, goal=0.02)


async def test_a_cell_of_which_enough_is_known_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Drawn()
    why = await run(tmp_path, INTERVAL, drawn, monkeypatch)
    assert why.startswith("all 12 rounds are done; in 1 of 2 cells")
    rounds = {vpn: [number for number, it in drawn.run if it == vpn] for vpn in ("open", "gre", "ipip")}
    assert rounds["gre"] == list(range(1, 7))
    assert rounds["open"] == rounds["ipip"] == list(range(1, 13))
    with CampaignData(tmp_path) as data:
        (settled,) = data.settled()
    assert (settled.campaign_round, settled.instances, settled.point) == (7, 6, TCP.key)
    assert settled.half_width < 0.02


async def test_all_is_measured_again_where_that_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = Drawn()
    method = INTERVAL.model_copy(update={"leave_out_settled": False})
    await run(tmp_path, method, drawn, monkeypatch)
    assert len(drawn.run) == 3 * 12


async def test_fixed_rounds_stop_without_a_goal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = Drawn()
    assert await run(tmp_path, Method(rounds=2), drawn, monkeypatch) == "all 2 rounds are done"
    assert len(drawn.run) == 6


@pytest.mark.parametrize("breaks_after", [1, 18, 20])
async def test_an_interruption_changes_nothing(
    breaks_after: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, first, second = Drawn(), Drawn(breaks_after), Drawn()
    why = await run(tmp_path / "whole", INTERVAL, whole, monkeypatch)
    with pytest.raises(StoppedError):
        await run(tmp_path / "broken", INTERVAL, first, monkeypatch)
    assert await run(tmp_path / "broken", INTERVAL, second, monkeypatch) == why
    assert first.run + second.run == whole.run
