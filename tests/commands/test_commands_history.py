from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from small_campaign import EVIDENCE, POINT, RECORD, TREATMENT, machine_state, write_campaign

from tunnelbench.campaign.history import durations_of
from tunnelbench.errors import UserError
from tunnelbench.store.model import InstanceRecord, TrialRecord
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell
from tunnelbench.study.quantity import CAPACITY

SEARCHED = POINT.model_copy(update={"transport": "udp", "rate": CAPACITY})
TRIAL_SECONDS = 1.7


def trial(position: int, seconds: float) -> TrialRecord:
    point = SEARCHED if position else POINT
    return TrialRecord(
        position, point, datetime.now(UTC), 1.0, metrics={"throughput": 1.0}, machine=machine_state(seconds)
    )


def test_a_search_counts_as_neither_bring_up_nor_overhead_of_trials(tmp_path: Path) -> None:
    cells = [Cell(treatment=TREATMENT, point=point) for point in (POINT, SEARCHED)]
    with CampaignStore.create(tmp_path / "earlier", RECORD, cells) as store:
        instance = store.begin_instance(InstanceRecord(1, 0, TREATMENT, "namespace"))
        store.prove(instance, EVIDENCE, 1.0)
        store.add_trial(instance, trial(0, TRIAL_SECONDS + 0.25))
        store.add_trial(instance, trial(1, 30.0))
        store.end_instance(instance, "proven")
        store.finish("finished", "done")
    found = durations_of(tmp_path / "earlier")
    assert found.trial.usual == pytest.approx(0.25)
    # It took no time at all to write it, so that trials took longer than their instance.
    assert found.instance_of["open", "namespace"].usual == 0


def test_where_nothing_searched_for_nothing_trials_are_as_usual(tmp_path: Path) -> None:
    record = replace(RECORD, id="2")
    with CampaignStore.create(tmp_path, record, [Cell(treatment=TREATMENT, point=SEARCHED)]) as store:
        instance = store.begin_instance(InstanceRecord(1, 0, TREATMENT, "namespace"))
        store.prove(instance, EVIDENCE, 1.0)
        store.add_trial(instance, trial(1, 30.0))
        store.end_instance(instance, "proven")
        store.finish("finished", "done")
    assert durations_of(tmp_path).trial.low > 0


def test_a_campaign_without_trials_tells_nothing(tmp_path: Path) -> None:
    write_campaign(tmp_path, trials=False)
    with pytest.raises(UserError, match="no instance"):
        durations_of(tmp_path)


def test_a_first_round_tells_less_than_later_ones(tmp_path: Path) -> None:
    with CampaignStore.create(tmp_path, RECORD, [Cell(treatment=TREATMENT, point=POINT)]) as store:
        for campaign_round in (1, 2, 3):
            instance = store.begin_instance(InstanceRecord(campaign_round, 0, TREATMENT, "namespace"))
            store.prove(instance, EVIDENCE, 1.0)
            store.add_trial(instance, trial(0, 2.0))
            store.end_instance(instance, "proven")
        store.finish("finished", "done")
    assert durations_of(tmp_path).origin == f"2 instances of {tmp_path}"
