"""`tunnelbench compare` from the outside."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from command_line import CommandLine
from small_campaign import EVIDENCE, POINT, RECORD, TREATMENT

from tunnelbench.store.model import InstanceRecord, TrialRecord
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell
from tunnelbench.study.points import Point

CALM = (1.0, 1.001, 0.999, 1.002, 0.998, 1.0)


def write(directory: Path, throughput: float | None, point: Point = POINT) -> Path:
    """A campaign of one cell with six instances; without a throughput none came up."""
    with CampaignStore.create(directory, RECORD, [Cell(treatment=TREATMENT, point=point)]) as store:
        for number, luck in enumerate(CALM, 1):
            instance = store.begin_instance(InstanceRecord(number, 0, TREATMENT, "namespace"))
            if throughput is None:
                store.end_instance(instance, "failed", "no daemon")
                continue
            store.prove(instance, EVIDENCE, 1.0)
            metrics = {"throughput": throughput * luck}
            store.add_trial(instance, TrialRecord(0, point, datetime.now(UTC), 1.0, metrics=metrics))
            store.end_instance(instance, "proven")
        store.finish("finished", "done")
    return directory


@pytest.mark.parametrize(
    ("after", "status", "verdict"),
    [(1000.0, 0, "unchanged"), (900.0, 1, "worse"), (1100.0, 0, "better"), (995.0, 0, "unchanged")],
)
def test_a_regression_has_a_status_of_its_own(
    after: float, status: int, verdict: str, tmp_path: Path, tunnelbench: CommandLine
) -> None:
    one, other = write(tmp_path / "one", 1000.0), write(tmp_path / "other", after)
    outcome = tunnelbench("compare", str(one), str(other))
    assert (outcome.status, verdict in outcome.output) == (status, True)
    assert f"Worse: {status} of 1 cells." in outcome.output


def test_programs_get_json(tmp_path: Path, tunnelbench: CommandLine) -> None:
    one, other = write(tmp_path / "one", 1000.0), write(tmp_path / "other", 900.0)
    outcome = tunnelbench("compare", str(one), str(other), "--least", "5 %", "--json")
    said = json.loads(outcome.output)
    assert said["regression"] is True
    (change,) = said["changes"]
    assert change["ratio"] == pytest.approx(0.9)
    assert change["low"] < 0.9 < change["high"]
    assert (change["verdict"], change["vpn"], change["metric"]) == ("worse", "open", "throughput")
    assert tunnelbench("compare", str(one), str(other), "--least", "20%").status == 0


def test_what_has_no_number_any_more_is_a_regression(tmp_path: Path, tunnelbench: CommandLine) -> None:
    one, other = write(tmp_path / "one", 1000.0), write(tmp_path / "other", None)
    outcome = tunnelbench("compare", str(one), str(other))
    assert outcome.status == 1
    assert "no number any more" in outcome.output
    back = tunnelbench("compare", str(other), str(one))
    assert (back.status, "no cell in common" in back.errors) == (2, True)


def test_campaigns_without_a_common_cell_can_not_be_compared(
    tmp_path: Path, tunnelbench: CommandLine
) -> None:
    one = write(tmp_path / "one", 1000.0)
    other = write(tmp_path / "other", 1000.0, POINT.model_copy(update={"payload_bytes": 7}))
    outcome = tunnelbench("compare", str(one), str(other))
    assert (outcome.status, "no cell in common" in outcome.errors) == (2, True)


@pytest.mark.parametrize("least", ["1", "-1%", "100%", "a little"])
def test_a_wrong_smallest_change_is_refused(least: str, tmp_path: Path, tunnelbench: CommandLine) -> None:
    outcome = tunnelbench("compare", str(tmp_path), str(tmp_path), "--least", least)
    assert outcome.status == 2
    assert "--least" in outcome.errors
