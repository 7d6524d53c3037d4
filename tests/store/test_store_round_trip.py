"""What is written comes back as it was."""

from __future__ import annotations

import math
import tempfile
from dataclasses import replace
from datetime import timedelta, timezone
from pathlib import Path
from typing import Any

import polars
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_records import (
    CAMPAIGN,
    CELL,
    EVIDENCE,
    STARTED,
    UDP,
    WARNING,
    add_proven,
    create,
    instance,
    trial,
    void_trial,
)

from tunnelbench.store.model import (
    CryptographyRecord,
    InstanceRecord,
    MachineStateRecord,
    TrialRecord,
    WarningRecord,
)
from tunnelbench.store.read import CampaignData
from tunnelbench.study.cells import Treatment
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import MAXIMUM, Bursts, SendingRate
from tunnelbench.witness.evidence import Evidence

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz_", min_size=1, max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
WARNINGS = st.builds(WarningRecord, TEXT, TEXT, TEXT)

INSTANCES = st.builds(
    InstanceRecord,
    campaign_round=st.integers(1, 1000),
    position=st.integers(0, 1000),
    treatment=st.builds(
        Treatment, vpn=TEXT, suite=TEXT, gateway_os=TEXT, host_os=TEXT, mtu=st.integers(68, 65535)
    ),
    runtime=st.none() | st.sampled_from(["namespace", "kernel"]),
    runtime_reason=st.none() | TEXT,
)
EVIDENCES = st.builds(
    Evidence,
    packets=st.dictionaries(TEXT, st.integers(0, 2**40), max_size=4),
    marker_forward=st.booleans(),
    marker_reverse=st.booleans(),
    marker_expected=st.booleans(),
    suite_asked=TEXT,
    suite_read_back=TEXT,
    first_packets=st.lists(TEXT, max_size=3),
)
POINTS = st.builds(
    Point,
    transport=st.sampled_from(["tcp", "udp", "icmp"]),
    ip=st.sampled_from(["ipv4", "ipv6"]),
    profile=TEXT,
    payload_bytes=st.none() | st.integers(0, 2**31),
    rate=st.none()
    | st.just(MAXIMUM)
    | st.builds(SendingRate, st.integers(1, 10**12), st.sampled_from(["bit/s", "packets/s"]))
    | st.builds(Bursts, st.integers(1, 1000), st.integers(1, 10**12)),
    direction=st.none() | st.sampled_from(["forward", "reverse", "both"]),
    streams=st.none() | st.integers(1, 128),
    content=st.none() | TEXT,
    sending=st.none() | st.sampled_from(["batched", "per-packet", "segmented"]),
    congestion_control=st.none() | TEXT,
    background=st.sampled_from(["none", "tcp", "tcp-reverse", "tcp-both"]),
    load=TEXT,
)
TRIALS = st.builds(
    TrialRecord,
    position=st.integers(0, 1000),
    point=POINTS,
    started=st.datetimes(timezones=st.just(timezone(timedelta(hours=-3, minutes=30)))),
    seconds=st.floats(0, 1e6),
    metrics=st.dictionaries(NAMES, NUMBERS, min_size=1, max_size=5),
    node_costs=st.dictionaries(NAMES, st.dictionaries(NAMES, NUMBERS, min_size=1, max_size=3), max_size=3),
    series=st.dictionaries(NAMES, st.lists(NUMBERS, max_size=5), max_size=2),
    histograms=st.dictionaries(NAMES, st.binary(max_size=50), max_size=2),
    warnings=st.lists(WARNINGS, max_size=2),
)


@settings(max_examples=25, deadline=None)
@given(record=INSTANCES, evidence=EVIDENCES, records=st.lists(TRIALS, max_size=3), log=TEXT)
def test_round_trip(record: InstanceRecord, evidence: Evidence, records: list[TrialRecord], log: str) -> None:
    with tempfile.TemporaryDirectory() as name, create(Path(name) / "campaign") as store:
        identity = store.begin_instance(record)
        store.prove(identity, evidence, 1.5)
        trial_identities = [store.add_trial(identity, record) for record in records]
        store.end_instance(identity, "proven", log_tail=log)
        assert store.finished_instances() == [record]
        with CampaignData(store.directory) as data:
            assert data.evidence(identity) == _with_lists(evidence)
            assert data.instances()["log_tail"].to_list() == [log]
            _assert_same_trials(data, trial_identities, records)


def _with_lists(evidence: Evidence) -> Evidence:
    return Evidence(
        evidence.packets,
        evidence.marker_forward,
        evidence.marker_reverse,
        evidence.marker_expected,
        evidence.suite_asked,
        evidence.suite_read_back,
        list(evidence.first_packets),
    )


def _assert_same_trials(data: CampaignData, identities: list[int], records: list[TrialRecord]) -> None:
    frame, costs = data.trials(), data.node_costs()
    for identity, record in zip(identities, records, strict=True):
        rows = frame.filter(polars.col("trial") == identity)
        assert dict(rows.select("metric", "value").iter_rows()) == record.metrics
        levels = record.point.model_dump()
        assert rows.select(levels.keys()).unique().to_dicts() == [levels]
        cost = costs.filter(polars.col("trial") == identity).select("node", "field", "value").iter_rows()
        assert {(node, field): value for node, field, value in cost} == {
            (node, field): value
            for node, fields in record.node_costs.items()
            for field, value in fields.items()
        }
        assert data.series(identity) == record.series
        assert data.histograms(identity) == record.histograms
    written = [
        (warning.kind, warning.message, warning.advice) for record in records for warning in record.warnings
    ]
    assert data.warnings().select("kind", "message", "advice").rows() == written


def test_campaign_and_cells(tmp_path: Path) -> None:
    with create(tmp_path), CampaignData(tmp_path) as data:
        assert data.campaign() == CAMPAIGN
        (row,) = data.cells().iter_rows(named=True)
        point = CELL.point.model_dump()
        assert row == {"key": CELL.key, **CELL.treatment.model_dump(), **point, "skipped": None}


def test_the_columns_of_trials(tmp_path: Path) -> None:
    with create(tmp_path) as store, CampaignData(tmp_path) as empty:
        store.add_trial(add_proven(store, instance()), trial())
        with CampaignData(tmp_path) as data:
            assert data.trials().schema == empty.trials().schema
            assert data.trials().columns == [
                "campaign_round",
                "instance",
                "runtime",
                "vpn",
                "suite",
                "options",
                "outer_ip",
                "clients",
                "gateway_os",
                "host_os",
                "mtu",
                "transport",
                "ip",
                "profile",
                "payload_bytes",
                "rate",
                "direction",
                "streams",
                "content",
                "sending",
                "congestion_control",
                "background",
                "load",
                "trial",
                "status",
                "metric",
                "value",
            ]


def test_times_are_read_as_utc(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        identity = add_proven(store, instance())
        store.end_instance(identity, "proven")
        with CampaignData(tmp_path) as data:
            assert data.campaign().created == STARTED
            (row,) = data.instances().iter_rows(named=True)
    assert row["started"].utcoffset() == timedelta(0)
    assert row["started"] <= row["ended"]
    assert row["setup_ms"] == 812.5


def test_void_trials_have_a_reason_and_no_numbers(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        identity = add_proven(store, instance())
        store.add_trial(identity, trial(0))
        store.add_trial(identity, void_trial(1))
        with CampaignData(tmp_path) as data:
            assert data.trials().filter(status="void").select("metric", "value").rows() == [(None, None)]
            assert data.void_trials()["reason"].to_list() == ["openvpn on gw1 died"]


def test_warnings_of_an_instance_have_no_trial(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        store.add_warning(add_proven(store, instance("gre")), WARNING)
        with CampaignData(tmp_path) as data:
            (row,) = data.warnings().iter_rows(named=True)
    assert (row["trial"], row["vpn"], row["kind"]) == (None, "gre", "unstable")


def test_refused_instances_keep_their_evidence(tmp_path: Path) -> None:
    with create(tmp_path) as store:
        identity = store.begin_instance(instance())
        store.end_instance(identity, "refused", "the marker was readable", evidence=EVIDENCE)
        with CampaignData(tmp_path) as data:
            assert data.evidence(identity) == _with_lists(EVIDENCE)
            assert data.evidence(store.begin_instance(instance("gre"))) is None


@pytest.mark.parametrize(
    "broken",
    [
        {"metrics": {}},
        {"metrics": {"throughput": math.nan}},
        {"metrics": {"throughput": math.inf}},
        {"status": "void"},
        {"status": "void", "reason": "died"},
        {"status": "void", "metrics": {}, "node_costs": {}},
        {"started": STARTED.replace(tzinfo=None)},
    ],
)
def test_trials_that_could_mislead_are_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"trial|finite"):
        replace(trial(), **broken)


def test_cryptography_comes_back(tmp_path: Path) -> None:
    treatment = CELL.treatment
    records = (
        CryptographyRecord(treatment, "kernel", "AES-128-CBC", "HMAC-SHA-1-96", "Linux 6.1.176", 0.0, 7.25),
        CryptographyRecord(treatment, "namespace", "Salsa20", "umac", "OpenSSL", None, None, "no Salsa20"),
    )
    with create(tmp_path) as store:
        store.add_cryptography(records)
    with CampaignData(tmp_path) as data:
        assert data.cryptography() == records


def test_parts_are_all_trials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunnelbench.store.outline._TOGETHER", 1)
    with create(tmp_path) as store:
        identity = add_proven(store, instance())
        store.add_trial(identity, trial(0))
        store.add_trial(identity, replace(trial(1), point=UDP))
        store.add_trial(identity, void_trial(2))
        with CampaignData(tmp_path) as data:
            parts = list(data.by_points())
            trials, costs = data.trials(), data.node_costs()
    assert [part.trials["transport"].unique().to_list() for part in parts] == [["tcp"], ["udp"]]
    assert polars.concat([part.trials for part in parts]).sort("trial", "metric").equals(trials)
    assert polars.concat([part.node_costs for part in parts]).sort("trial", "node", "field").equals(costs)


def test_machine_states_have_the_levels_of_their_trials(tmp_path: Path) -> None:
    state = MachineStateRecord("during", 2.0, 4, 0.1, 0.0, None, None, 0.0, "tsc")
    with create(tmp_path) as store:
        store.add_machine_state(replace(state, moment="before"))
        identity = add_proven(store, instance())
        store.add_trial(identity, replace(trial(0), machine=state))
        with CampaignData(tmp_path) as data:
            before, during = data.machine_states().iter_rows(named=True)
    assert (before["moment"], before["trial"], before["vpn"]) == ("before", None, None)
    assert (during["moment"], during["vpn"], during["transport"]) == ("during", "open", "tcp")
    assert (during["instance"], during["seconds"], during["clock_source"]) == (identity, 2.0, "tsc")
