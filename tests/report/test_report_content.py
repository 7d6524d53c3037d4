"""The content of a report against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic_campaign import STARTED, TCP, TUNNELS, UDP, begin, campaign_record, evidence_of

from tunnelbench.report.answers import comparisons, headline_sections
from tunnelbench.report.collect import collect
from tunnelbench.report.columns import columns_for
from tunnelbench.report.content import Content, Result
from tunnelbench.report.html import render
from tunnelbench.report.illustrations import Illustrations
from tunnelbench.report.point_numbers import processor_totals
from tunnelbench.report.wording import interval_name
from tunnelbench.store.model import RekeyRecord, TrialRecord, WarningRecord
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell, Treatment

OPEN = Treatment(vpn="open", suite="none", gateway_os="bookworm", host_os="bookworm", mtu=1500)
ESP = Treatment(vpn="ipsec-manual", suite="aes128-sha1", gateway_os="bookworm", host_os="bookworm", mtu=1500)


def measured(content: Content, tunnel: str, runtime: str = "kernel") -> Result:
    results = (result for section in content.sections for result in section.results)
    return next(result for result in results if (result.tunnel, result.runtime) == (tunnel, runtime))


def write(directory: Path, values: dict[Treatment, list[float]], **metrics: float) -> None:
    """Write one TCP trial per treatment and round with these throughputs."""
    cells = [Cell(treatment=treatment, point=TCP) for treatment in values]
    with CampaignStore.create(directory, campaign_record(), cells) as store:
        for treatment, throughputs in values.items():
            for number, throughput in enumerate(throughputs, 1):
                instance = begin(store, number, treatment, "kernel")
                store.prove(instance, evidence_of(treatment, encrypted=treatment is not OPEN), 100.0 * number)
                numbers = {"throughput": throughput, **metrics}
                store.add_trial(instance, TrialRecord(0, TCP, STARTED, 1.0, metrics=numbers))
                store.end_instance(instance, "proven")
        store.finish("finished", "done")


def collected(directory: Path) -> Content:
    with CampaignData(directory) as data:
        return collect(data)


def test_medians_ratios_and_set_up_times(tmp_path: Path) -> None:
    write(tmp_path, {OPEN: [1000.0, 800.0, 900.0], ESP: [400.0, 400.0, 270.0]})
    result = measured(collected(tmp_path), "ipsec-manual/aes128-sha1")
    assert result.throughput is not None
    assert (result.throughput.median, result.throughput.n_instances) == (400.0, 3)
    assert result.throughput.ratio == pytest.approx(0.4)  # median of 0.4, 0.5, 0.3
    assert (result.throughput.ratio_low, result.throughput.ratio_high) == pytest.approx((0.3, 0.5))
    assert result.proof.setup_ms == 200.0
    assert result.proof.proven == 3


def test_new_keys_stand_beside_the_set_up(tmp_path: Path) -> None:
    with CampaignStore.create(tmp_path, campaign_record(), [Cell(treatment=ESP, point=TCP)]) as store:
        for number in (1, 2, 3):
            instance = begin(store, number, ESP, "kernel")
            store.prove(instance, evidence_of(ESP), 100.0 * number, 10.0 * number)
            store.add_rekey(instance, RekeyRecord(0.1 * number, 0.01, 0.0, 30.0, 2.0, 5.0 * number, 1.0))
            store.end_instance(instance, "proven")
    (esp,) = collected(tmp_path).bringing
    assert (esp.proof.setup_ms, esp.proof.handshake_ms) == (200.0, 20.0)
    assert esp.rekey is not None
    assert (esp.rekey.seconds, esp.rekey.gap_ms, esp.rekey.latency_ms) == pytest.approx((0.2, 30.0, 10.0))
    assert esp.rekey_refusal is None


def test_why_there_were_no_new_keys_stands_beside_the_set_up(tmp_path: Path) -> None:
    reason = "new keys could not be measured: they were written by hand"
    with CampaignStore.create(tmp_path, campaign_record(), [Cell(treatment=ESP, point=TCP)]) as store:
        instance = begin(store, 1, ESP, "kernel")
        store.prove(instance, evidence_of(ESP), 100.0)
        store.add_warning(instance, WarningRecord("no-rekey", reason, "Never mind."))
        store.end_instance(instance, "proven")
    content = collected(tmp_path)
    (esp,) = content.bringing
    assert (esp.rekey, esp.rekey_refusal) == (None, reason)
    assert f'<td class="words" colspan="4">{reason}</td>' in render(content, Illustrations())


def test_only_proven_instances_count_as_proof(tmp_path: Path) -> None:
    with CampaignStore.create(tmp_path, campaign_record(), [Cell(treatment=ESP, point=TCP)]) as store:
        instance = begin(store, 1, ESP, "kernel")
        store.prove(instance, evidence_of(ESP), 1.0)
        store.add_trial(instance, TrialRecord(0, TCP, STARTED, 1.0, metrics={"throughput": 5.0}))
        store.end_instance(instance, "proven")
        refused = evidence_of(ESP, read_back="null")
        store.end_instance(begin(store, 2, ESP, "kernel"), "refused", "another suite", evidence=refused)
        store.end_instance(begin(store, 3, ESP, "kernel"), "failed", "never came up")
    proof = measured(collected(tmp_path), "ipsec-manual/aes128-sha1").proof
    assert (proof.proven, proof.instances) == (1, 3)
    assert proof.evidence is not None
    assert proof.evidence.suite_read_back == "aes128-sha1"


def test_results_come_by_runtime_and_the_fastest_first(content: Content) -> None:
    for section in content.sections:
        speeds = [
            (result.runtime != "namespace", -result.throughput.median)
            for result in section.results
            if result.throughput
        ]
        assert speeds == sorted(speeds)
        assert len(speeds) == len(section.results)


def test_what_is_encrypted_is_taken_from_the_evidence(content: Content) -> None:
    for section in content.sections:
        for result in section.results:
            assert result.encrypted == (result.treatment.vpn not in ("open", "ipip", "gre"))


def test_every_cell_is_accounted_for(content: Content) -> None:
    assert content.outcomes == {
        "proven": 2 * (len(TUNNELS) - 1) - 1,
        "refused": 2,
        "failed": 2,
        "void": 0,
        "skipped": 3,
        "unfinished": 0,
    }


def test_cells_whose_trials_are_all_void_or_missing(tmp_path: Path) -> None:
    cells = [Cell(treatment=ESP, point=TCP), Cell(treatment=ESP, point=UDP)]
    with CampaignStore.create(tmp_path, campaign_record(), cells) as store:
        instance = begin(store, 1, ESP, "kernel")
        store.prove(instance, evidence_of(ESP), 1.0)
        store.add_trial(instance, TrialRecord(0, TCP, STARTED, 1.0, status="void", reason="charon died"))
    found = collected(tmp_path)
    assert {name: count for name, count in found.outcomes.items() if count} == {"void": 1, "unfinished": 1}
    assert not found.sections
    outcomes = {item.outcome: item.reason for item in found.unmeasured}
    assert outcomes["void"] == "charon died"


def test_everything_without_a_number_has_its_reason(content: Content) -> None:
    found = {(item.tunnel, item.outcome): item for item in content.unmeasured}
    assert set(found) == {
        ("ipsec-manual/null-sha1", "refused"),
        ("openvpn/bf-cbc-sha1", "failed"),
        ("ipsec-manual/des-md5", "skipped"),
        ("ssh-vpn/aes128-cbc-sha1", "void"),
        ("ssh-port-forwarding/aes128-cbc-sha1", "skipped"),
    }
    assert all(item.reason for item in content.unmeasured)
    assert found["ipsec-manual/null-sha1", "refused"].evidence is not None
    assert found["openvpn/bf-cbc-sha1", "failed"].log_tail == "tun0: no such device\nexiting"
    assert found["openvpn/bf-cbc-sha1", "failed"].affected == "4 of 4 instances"


def test_warnings_are_counted(content: Content) -> None:
    (doubt,) = (doubt for doubt in content.doubts if doubt.kind == "saturated-load")
    assert (doubt.tunnel, doubt.count) == ("openvpn/aes-256-gcm", 1)


def test_systems_are_named_only_where_they_differ(tmp_path: Path) -> None:
    def on(treatment: Treatment, gateway_os: str, host_os: str) -> Treatment:
        return treatment.model_copy(update={"gateway_os": gateway_os, "host_os": host_os})

    both, gateways = tmp_path / "both", tmp_path / "gateways"
    write(both, {on(OPEN, name, name): [1000.0] for name in ("bookworm", "trixie")})
    write(gateways, {on(OPEN, name, "trixie"): [1000.0] for name in ("bookworm", "trixie")})
    tunnels = [
        {result.tunnel for section in collected(directory).sections for result in section.results}
        for directory in (both, gateways)
    ]
    assert tunnels == [
        {"open bookworm", "open trixie"},
        {"open gateways bookworm", "open gateways trixie"},
    ]


def test_the_mtu_is_named_only_where_it_differs(tmp_path: Path) -> None:
    write(tmp_path, {OPEN: [1000.0], ESP: [400.0], ESP.model_copy(update={"mtu": 1400}): [300.0]})
    tunnels = {result.tunnel for section in collected(tmp_path).sections for result in section.results}
    assert tunnels == {
        "open MTU 1500",
        "ipsec-manual/aes128-sha1 MTU 1500",
        "ipsec-manual/aes128-sha1 MTU 1400",
    }


def test_what_was_measured_once_has_no_analysis_of_variance(tmp_path: Path) -> None:
    write(tmp_path / "once", {OPEN: [1000.0], ESP: [400.0]})
    assert collected(tmp_path / "once").effects == {}
    write(tmp_path / "twice", {OPEN: [1000.0, 990.0], ESP: [400.0, 410.0]})
    assert set(collected(tmp_path / "twice").effects) == {"throughput"}


def test_intervals_are_named_after_the_fewest_instances_that_have_one(tmp_path: Path) -> None:
    write(tmp_path, {OPEN: [900.0, 910.0, 920.0, 930.0, 940.0, 950.0], ESP: [400.0] * 4})
    (section,) = collected(tmp_path).sections
    assert interval_name(4) in [column.heading for column in columns_for(section)]


def test_clients_of_a_gateway_are_counted_together(tmp_path: Path) -> None:
    seconds = {"client1": 0.25, "client2": 0.5, "gw": 0.75, "host": 0.125, "switch": 0.0, "machine": 1.75}
    with CampaignStore.create(tmp_path, campaign_record(), [Cell(treatment=OPEN, point=TCP)]) as store:
        instance = begin(store, 1, OPEN, "namespace")
        store.prove(instance, evidence_of(OPEN, encrypted=False), 100.0)
        costs = {node: {"total": value} for node, value in seconds.items()}
        record = TrialRecord(0, TCP, STARTED, 1.0, metrics={"throughput": 900.0}, node_costs=costs)
        store.add_trial(instance, record)
        store.end_instance(instance, "proven")
        store.finish("finished", "done")
    result = measured(collected(tmp_path), "open", "namespace")
    assert result.by_node == {"clients": 0.75, "gw": 0.75, "host": 0.125}
    assert list(result.by_node) == ["clients", "gw", "host"]
    assert (result.gateways, result.machine) == (0.75, 1.75)


def test_processor_totals_take_the_total_or_the_sum_of_the_parts() -> None:
    names = [("gw1", "softirq"), ("gw1", "system"), ("gw1", "total"), ("gw1", "user"), ("gw2", "switches")]
    nothing = float("nan")
    values = np.array([[0.3, 0.2, 0.7, 0.1, nothing], [nothing, 0.25, nothing, 0.1, 9.0], [nothing] * 5])
    nodes, totals = processor_totals(names, values)
    assert nodes == ["gw1", "gw2"]
    np.testing.assert_allclose(totals, [[0.7, nothing], [0.35, 0.0], [nothing, nothing]])


def test_fastest_slowest_and_those_of_one_tier(tmp_path: Path) -> None:
    rival = ESP.model_copy(update={"suite": "aes128-gcm"})
    slow = ESP.model_copy(update={"suite": "3des-sha1"})
    values = {ESP: [400.0, 420.0, 411.0, 416.0], rival: [405.0, 411.0, 408.0, 416.0]}
    write(tmp_path, {OPEN: [1e3, 1e3, 1e3, 1e3], **values, slow: [150.0, 151.0, 150.0, 152.0]})
    (comparison,) = comparisons(collected(tmp_path))
    assert comparison.headline == "TCP, gateways in User Mode Linux kernels"
    assert comparison.best.treatment == ESP
    assert comparison.worst is not None
    assert comparison.worst.treatment == slow
    assert comparison.rivals == ("ipsec-manual/aes128-gcm",)


def test_the_headline_is_the_point_at_which_plain_ip_is_fastest(content: Content) -> None:
    (section, *_) = content.sections
    slower = replace(
        section, point=section.point.model_copy(update={"payload_bytes": 64}), results=section.results[1:]
    )
    assert headline_sections([slower, section]) == [section]
    assert headline_sections([section, slower]) == [section]


def test_a_campaign_says_the_same_in_parts_as_at_once(
    campaign: Path, content: Content, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tunnelbench.store.outline._TOGETHER", 1)
    in_parts = collected(campaign)
    assert in_parts.sections == content.sections
    assert in_parts.doubts == content.doubts
    assert in_parts.outcomes == content.outcomes
    assert in_parts.explained == content.explained
    assert in_parts.summary.equals(content.summary)
    assert in_parts.processor.equals(content.processor)


def test_doubts_of_the_analysis_are_told(tmp_path: Path) -> None:
    write(tmp_path, {OPEN: [1000.0, 999.0], ESP: [400.0, 150.0]})
    doubts = {doubt.kind: doubt for doubt in collected(tmp_path).doubts}
    assert set(doubts) == {"too-few-instances", "unstable-cell"}
    assert "ipsec-manual/aes128-sha1" in doubts["unstable-cell"].message
    assert doubts["unstable-cell"].advice


def test_an_interrupted_instance_counts_until_it_is_run_again(tmp_path: Path) -> None:
    with CampaignStore.create(tmp_path, campaign_record(), [Cell(treatment=ESP, point=TCP)]) as store:
        instance = begin(store, 1, ESP, "kernel")
        store.prove(instance, evidence_of(ESP), 1.0)
        store.add_trial(instance, TrialRecord(0, TCP, STARTED, 1.0, metrics={"throughput": 5.0}))
    CampaignStore.open(tmp_path).close()
    content = collected(tmp_path)
    result = measured(content, "ipsec-manual/aes128-sha1")
    assert result.proof.proven == 1
    assert result.encrypted
    assert content.campaign.state == "interrupted"
    assert [item.outcome for item in content.unmeasured] == ["interrupted"]


@pytest.mark.parametrize(
    ("instances", "name"), [(2, "50 % interval"), (3, "75 % interval"), (6, "95 % interval")]
)
def test_an_interval_promises_no_more_than_its_instances_can(instances: int, name: str) -> None:
    assert interval_name(instances) == name
