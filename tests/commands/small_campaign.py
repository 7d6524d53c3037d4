"""The smallest campaign with a result, written through the real store: test data, never a measurement."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tunnelbench.store.model import (
    CampaignRecord,
    InstanceRecord,
    MachineStateRecord,
    TrialRecord,
    Versions,
)
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell, Treatment
from tunnelbench.study.points import Point
from tunnelbench.witness.evidence import Evidence

STUDY = """
[study]
id = "small"
title = "Small"
question = "Is it written?"
[factors]
tunnel = ["open"]
payload_bytes = [1000]
[method]
trial = "1.7 s"
"""
TREATMENT = Treatment(vpn="open", suite="none", gateway_os="bookworm", host_os="bookworm", mtu=1500)
POINT = Point(transport="tcp", ip="ipv4", payload_bytes=1000, rate=None, direction="forward", load="engine")
RECORD = CampaignRecord(
    id="1",
    study_id="small",
    study_title="Small",
    study_question="Is it written?",
    study_toml=STUDY,
    seed=1,
    plan={"rounds": 1},
    versions=Versions(product="0", kernel="0", processor="invented"),
)
EVIDENCE = Evidence({"ipv4 tcp 5201": 1}, True, True, True, "none", "none")


def machine_state(seconds: float) -> MachineStateRecord:
    """Of an idle machine, over a trial that took so long."""
    return MachineStateRecord(
        moment="during",
        seconds=seconds,
        processors=2,
        others=0.0,
        stolen=0.0,
        frequency_mhz=None,
        temperature_c=None,
        clock_step_ms=0.0,
        clock_source=None,
    )


def write_campaign(directory: Path, *, trials: bool = True) -> None:
    """Writes a campaign of one cell, with its one trial or before it."""
    with CampaignStore.create(directory, RECORD, [Cell(treatment=TREATMENT, point=POINT)]) as store:
        if not trials:
            return
        instance = store.begin_instance(InstanceRecord(1, 0, TREATMENT, "namespace"))
        store.prove(instance, EVIDENCE, 1.0)
        trial = TrialRecord(
            0, POINT, datetime.now(UTC), 1.0, metrics={"throughput": 123.0}, machine=machine_state(2.0)
        )
        store.add_trial(instance, trial)
        store.end_instance(instance, "proven")
        store.finish("finished", "done")
