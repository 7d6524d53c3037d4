"""Records for tests of the store."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tunnelbench.store.model import (
    CampaignRecord,
    InstanceRecord,
    TrialRecord,
    Versions,
    WarningRecord,
)
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell, Treatment
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import SendingRate
from tunnelbench.witness.evidence import Evidence

STARTED = datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=UTC)

CAMPAIGN = CampaignRecord(
    id="c1",
    study_id="quick",
    study_title="What does each VPN cost?",
    study_question="How fast?",
    study_toml='title = "What does each VPN cost?"',
    seed=7,
    plan={"rounds": 3, "seconds": 2.0, "budget": None},
    versions=Versions(
        product="0.1.0",
        kernel="6.18.0",
        processor="some processor",
        machine={"processors": "2"},
        images={"debian-12": "0123"},
        programs={"debian-12": {"openvpn": "2.6.3"}},
    ),
    created=STARTED,
)

TCP = Point(transport="tcp", ip="ipv4", payload_bytes=65536, rate=None, direction="forward", load="engine")
UDP = Point(
    transport="udp", ip="ipv6", payload_bytes=64, rate=SendingRate(10**9), direction="reverse", load="engine"
)
CELL = Cell(
    treatment=Treatment(vpn="open", suite="none", gateway_os="debian-12", host_os="debian-12", mtu=1500),
    point=UDP,
)

EVIDENCE = Evidence(
    packets={"esp": 12, "arp": 2},
    marker_forward=False,
    marker_reverse=False,
    marker_expected=False,
    suite_asked="aes128-sha1",
    suite_read_back="cbc(aes) hmac(sha1)",
    first_packets=("4500",),
)

WARNING = WarningRecord("unstable", "the trials differ by 40 %", "repeat with more rounds")


def instance(vpn: str = "open", campaign_round: int = 1, position: int = 0) -> InstanceRecord:
    treatment = Treatment(vpn=vpn, suite="none", gateway_os="debian-12", host_os="debian-12", mtu=1500)
    return InstanceRecord(campaign_round, position, treatment, "namespace", "can carry it")


def trial(position: int = 0, throughput: float = 900.0) -> TrialRecord:
    return TrialRecord(
        position=position,
        point=TCP,
        started=STARTED,
        seconds=2.0,
        metrics={"throughput": throughput, "wire_overhead": 1.05},
        node_costs={"gw1": {"user": 0.1, "system": 0.2}},
        series={"throughput": [899.0, 901.5]},
        histograms={"latency": b"\x00HDR\xff"},
        warnings=(WARNING,),
    )


def void_trial(position: int = 0, reason: str = "openvpn on gw1 died") -> TrialRecord:
    return TrialRecord(position, TCP, STARTED, 0.5, status="void", reason=reason)


def create(directory: Path) -> CampaignStore:
    return CampaignStore.create(directory, CAMPAIGN, [CELL])


def add_proven(store: CampaignStore, record: InstanceRecord) -> int:
    identity = store.begin_instance(record)
    store.prove(identity, EVIDENCE, 812.5)
    return identity
