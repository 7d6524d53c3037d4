"""An invented campaign, written through the real store: test data, never a measurement."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from tunnelbench.store.model import (
    CalibrationRecord,
    CampaignRecord,
    CryptographyRecord,
    InstanceRecord,
    RekeyRecord,
    TrialRecord,
    Versions,
    WarningRecord,
)
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell, Treatment
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import MAXIMUM, SendingRate
from tunnelbench.witness.evidence import Evidence

STARTED = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)
NODES = ("host1", "gw1", "gw2", "host2")
TCP = Point(transport="tcp", ip="ipv4", payload_bytes=131_072, rate=None, direction="forward", load="engine")
UDP = Point(transport="udp", ip="ipv4", payload_bytes=1400, rate=MAXIMUM, direction="forward", load="engine")
FIXED_RATE = UDP.model_copy(update={"payload_bytes": 1300, "rate": SendingRate(30_000_000)})


@dataclass(frozen=True)
class Invented:
    """One tunnel of the invented campaign: where it runs and about how fast it is."""

    tunnel: str
    runtime: str
    throughput: float
    protocol: str
    encrypted: bool = True


TUNNELS = (
    Invented("open/none", "namespace", 3600, "tcp", encrypted=False),
    Invented("open/none", "kernel", 980, "tcp", encrypted=False),
    Invented("ipip/none", "kernel", 940, "ipip", encrypted=False),
    Invented("gre/none", "kernel", 900, "gre", encrypted=False),
    Invented("ipsec-manual/aes128-sha1", "kernel", 390, "esp"),
    Invented("ipsec-manual/aes128-gcm", "kernel", 420, "esp"),
    Invented("ipsec-manual/3des-sha1", "kernel", 150, "esp"),
    Invented("openvpn/aes-128-cbc-sha1", "namespace", 250, "openvpn"),
    Invented("openvpn/aes-256-gcm", "namespace", 280, "openvpn"),
    Invented("ssh-port-forwarding/aes128-cbc-sha1", "namespace", 640, "ssh"),
    Invented("ssh-vpn/aes128-cbc-sha1", "namespace", 180, "ssh"),
    Invented("wireguard-go/chacha20-poly1305", "namespace", 450, "wireguard"),
)


def write_campaign(
    directory: Path,
    rounds: int = 4,
    tunnels: tuple[Invented, ...] = TUNNELS,
    points: tuple[Point, ...] = (TCP, UDP),
    text: Mapping[str, str] | None = None,
    link: str = "",
) -> Path:
    """Write an invented campaign with some of every kind: proven, refused, failed, skipped, void, warned.

    `text` replaces texts that users and programs supply: title, question, reason, suite, log, advice. `link`
    has the keys of the study's link, as TOML.
    """
    random = Random(1)
    texts = {
        "title": "Invented numbers for tests",
        "question": "Does the report say what the numbers say?",
        "reason": "the probe's marker was readable between the gateways",
        "suite": "",
        "log": "tun0: no such device\nexiting",
        "advice": "Close other programs, or give more rounds.",
        **(text or {}),
    }
    cells = [
        Cell(treatment=_treatment(tunnel.tunnel), point=point, skipped=_skipped(tunnel, point))
        for tunnel in tunnels
        if (tunnel.tunnel, tunnel.runtime) != ("open/none", "kernel")
        for point in points
    ]
    broken = [
        _treatment("ipsec-manual/null-sha1"),
        _treatment("openvpn/bf-cbc-sha1"),
        _treatment("ipsec-manual/des-md5"),
    ]
    cells += [Cell(treatment=treatment, point=point) for treatment in broken for point in points]
    record = campaign_record(texts["title"], texts["question"], rounds)
    record = replace(record, study_toml=f"{record.study_toml}[link]\n{link}\n")
    with CampaignStore.create(directory, record, cells) as store:
        store.add_calibrations(
            [
                CalibrationRecord("bookworm", 1500, TCP, {"throughput": 7000.0}),
                CalibrationRecord("bookworm", 1500, UDP, {}, "none of 4 datagrams arrived"),
            ]
        )
        store.add_cryptography(_cryptography([tunnel for tunnel in tunnels if tunnel.encrypted]))
        for campaign_round in range(1, rounds + 1):
            for position, tunnel in enumerate(tunnels):
                _run(store, campaign_round, position, tunnel, points, random, texts)
            _break(store, campaign_round, len(tunnels), broken, texts)
        store.finish("finished", f"all {rounds} rounds are done")
    return directory


def _cryptography(encrypted: list[Invented]) -> Iterator[CryptographyRecord]:
    """At 1400 bytes 1000 Mbit/s; of the last tunnel nobody knows."""
    for tunnel in encrypted[:-1]:
        titles = ("AES-128-CBC", "HMAC-SHA-1-96", "Linux 6.1.176")
        yield CryptographyRecord(_treatment(tunnel.tunnel), tunnel.runtime, *titles, 2800.0, 6.0)
    for tunnel in encrypted[-1:]:
        titles = ("Salsa20", "none", "OpenSSL 3.0.17")
        yield CryptographyRecord(
            _treatment(tunnel.tunnel), tunnel.runtime, *titles, None, None, "OpenSSL has no Salsa20"
        )


def _treatment(tunnel: str) -> Treatment:
    vpn, suite = tunnel.split("/", 1)
    return Treatment(vpn=vpn, suite=suite, gateway_os="bookworm", host_os="bookworm", mtu=1500)


def _skipped(tunnel: Invented, point: Point) -> str | None:
    carries = not (tunnel.tunnel.startswith("ssh-port") and point.transport == "udp")
    return None if carries else "SSH port forwarding doesn't carry UDP over IPv4"


def campaign_record(title: str = "Invented", question: str = "Why?", rounds: int = 4) -> CampaignRecord:
    """The invented campaign itself."""
    return CampaignRecord(
        id="5e1f",
        study_id="invented",
        study_title=title,
        study_question=question,
        study_toml='[study]\nid = "invented"\n',
        seed=1,
        plan={"rounds": rounds, "trial": 5.0, "warm_up": 0.5, "cool_down": 0.2},
        versions=Versions(
            product="0.1.0",
            kernel="6.18.0",
            processor="Invented Processor 2.0 GHz",
            machine={"processors": "2", "memory": "24 GiB"},
            images={"bookworm": "0f3c9a"},
            programs={
                "bookworm": {
                    "linux": "6.1.55",
                    "openvpn": "2.6.3",
                    "openssh": "9.2p1",
                    "wireguard-go": "0.0.20220316",
                }
            },
        ),
        created=STARTED,
    )


def _run(
    store: CampaignStore,
    campaign_round: int,
    position: int,
    tunnel: Invented,
    points: tuple[Point, ...],
    random: Random,
    texts: Mapping[str, str],
) -> None:
    treatment = _treatment(tunnel.tunnel)
    reason = (
        "this machine's kernel has no ESP"
        if tunnel.runtime == "kernel"
        else "this machine's kernel carries it"
    )
    instance = begin(store, campaign_round, treatment, tunnel.runtime, position, reason)
    evidence = evidence_of(treatment, tunnel.protocol, tunnel.encrypted, texts["suite"])
    store.prove(instance, evidence, random.uniform(200, 1500), random.uniform(20, 90))
    if tunnel.encrypted:
        store.add_rekey(instance, RekeyRecord(random.uniform(0.01, 0.2), 0.001, 0.0, 12.0, 2.1, 14.0, 1.9))
    level = tunnel.throughput * random.gauss(1, 0.04)
    for number, point in enumerate(point for point in points if _skipped(tunnel, point) is None):
        started = STARTED + timedelta(seconds=100 * campaign_round + 10 * position + number)
        if tunnel.tunnel == "ssh-vpn/aes128-cbc-sha1" and campaign_round == 2 and point.transport == "tcp":
            trial = TrialRecord(
                number, point, started, 1.0, status="void", reason="sshd on gw2 died while measuring"
            )
        else:
            trial = _trial(number, point, started, tunnel, level * random.gauss(1, 0.01), random)
        store.add_trial(instance, trial)
    if tunnel.tunnel == "openvpn/aes-256-gcm" and campaign_round == 1:
        message = "the load generator on host1 used 0.98 of a processor"
        store.add_warning(instance, WarningRecord("saturated-load", message, texts["advice"]))
    store.end_instance(instance, "proven")


def begin(
    store: CampaignStore,
    campaign_round: int,
    treatment: Treatment,
    runtime: str | None,
    position: int = 0,
    reason: str = "because the test says so",
) -> int:
    """Begin an instance; returns its id."""
    return store.begin_instance(InstanceRecord(campaign_round, position, treatment, runtime, reason))


def evidence_of(
    treatment: Treatment, protocol: str = "esp", encrypted: bool = True, read_back: str = ""
) -> Evidence:
    """Evidence that proves a treatment."""
    return Evidence(
        packets={protocol: 42, "arp": 2},
        marker_forward=not encrypted,
        marker_reverse=not encrypted,
        marker_expected=not encrypted,
        suite_asked=treatment.suite,
        suite_read_back=read_back or treatment.suite,
        entropy={protocol: 7.991 if encrypted else 4.2},
        read_back_text="the words of the program",
        wifi_read_back="station:\nkey_mgmt=WPA2-PSK",
        first_packets=("45000078000040004032b6c00a0000010a000002" + "1b2c3d4e" * 12,),
    )


def _trial(
    position: int, point: Point, started: datetime, tunnel: Invented, level: float, random: Random
) -> TrialRecord:
    busy = min(0.95, 0.3 + 80 / tunnel.throughput)
    fields = ("total",) if tunnel.runtime == "kernel" else ("user", "system")
    costs = {
        "machine": {"total": 2.8 * busy},
    } | {
        node: {
            field: busy * (1 if "gw" in node else 0.3) * random.uniform(0.9, 1.1) / len(fields)
            for field in fields
        }
        for node in NODES
    }
    overhead = 1.02 if tunnel.tunnel.startswith("open/") else 1.07
    metrics = {"throughput": level, "wire_overhead": overhead}
    if point.transport == "udp":
        median = 400 / tunnel.throughput
        loss = random.uniform(0.1, 0.3) if tunnel.encrypted else 0.0
        offered, received = level, 0.8 * level
        assert point.payload_bytes is not None
        if point.rate == FIXED_RATE.rate:
            loss = 0.2 if "3des" in tunnel.tunnel else 0.0
            offered, received = 30.0, 30.0 * (1 - loss)
        metrics |= {
            "throughput": received,
            "offered": offered,
            "loss": loss,
            "duplicates": 0.0,
            "reordering": 0.0,
            "jitter": 0.01,
            "packets_per_second": received * 1e6 / 8 / point.payload_bytes,
            "latency_p50": median * random.uniform(0.9, 1.1),
            "latency_p90": median * 1.8,
            "latency_p99": median * 4 * random.uniform(0.8, 1.3),
            "latency_p999": median * 9,
            "latency_max": median * 20,
        }
    return TrialRecord(position, point, started, 4.3, metrics=metrics, node_costs=costs)


def _break(
    store: CampaignStore,
    campaign_round: int,
    position: int,
    broken: list[Treatment],
    texts: Mapping[str, str],
) -> None:
    readable, silent, missing = broken
    instance = begin(store, campaign_round, readable, "kernel", position)
    evidence = evidence_of(readable, encrypted=False, read_back=texts["suite"])
    store.end_instance(instance, "refused", texts["reason"], evidence=evidence)
    instance = begin(store, campaign_round, silent, "namespace", position + 1)
    store.end_instance(instance, "failed", "openvpn on gw2 didn't come up within 20 s", log_tail=texts["log"])
    instance = begin(store, campaign_round, missing, None, position + 2)
    store.end_instance(instance, "skipped", "the image bookworm has no des")
