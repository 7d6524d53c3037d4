"""Probes alone and beside a bulk stream: the answer, the table and the figure that say what load adds."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_campaign import STARTED, begin, campaign_record, evidence_of

from tunnelbench.plan.estimate import BACKGROUND_SECONDS
from tunnelbench.report.answers import comparisons, headline_sections
from tunnelbench.report.background_figures import background_figures, loads
from tunnelbench.report.collect import collect
from tunnelbench.report.columns import columns_for, groups_of
from tunnelbench.report.content import Content
from tunnelbench.report.html import render
from tunnelbench.report.illustrations import Illustrations, illustrate
from tunnelbench.store.model import TrialRecord
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell, Treatment
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import SendingRate
from tunnelbench.study.wording import point_title

QUIET = Point(
    transport="udp",
    ip="ipv4",
    payload_bytes=200,
    rate=SendingRate(100, "packets/s"),
    direction="forward",
    load="engine",
)
LOADED = QUIET.model_copy(update={"background": "tcp"})
ECHO = QUIET.model_copy(update={"transport": "icmp", "direction": None})
OPEN = Treatment(vpn="open", suite="none", gateway_os="bookworm", host_os="bookworm", mtu=1500)
SHORT = Treatment(vpn="wireguard-go", suite="none", gateway_os="bookworm", host_os="bookworm", mtu=1500)
LONG = SHORT.model_copy(update={"vpn": "ssh-vpn", "suite": "aes128-gcm"})

DELAYS: dict[Treatment, tuple[float, float]] = {OPEN: (0.1, 40.0), SHORT: (0.2, 41.0), LONG: (0.4, 300.0)}
"""Median alone and beside the stream, ms."""


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One round of three treatments, each at two points and, with echo requests, at one that has no pair."""
    directory = tmp_path_factory.mktemp("background")
    points = (LOADED, QUIET, ECHO)
    cells = [Cell(treatment=treatment, point=point) for treatment in DELAYS for point in points]
    with CampaignStore.create(directory, campaign_record(), cells) as store:
        for treatment, (alone, loaded) in DELAYS.items():
            instance = begin(store, 1, treatment, "namespace")
            store.prove(instance, evidence_of(treatment, encrypted=treatment is not OPEN), 100.0)
            for position, point in enumerate(points):
                is_loaded = point.background != "none"
                median = loaded if is_loaded else alone
                name = "round_trip" if point.transport == "icmp" else "latency"
                metrics = {f"{name}_p50": median, f"{name}_p99": 2 * median, "loss": 0.0}
                metrics |= {"background_throughput": 47.0} if is_loaded else {"wire_overhead": 1.3}
                store.add_trial(instance, TrialRecord(position, point, STARTED, 1.0, metrics=metrics))
            store.end_instance(instance, "proven")
        store.finish("finished", "done")
    return directory


@pytest.fixture(scope="module")
def content(campaign: Path) -> Content:
    """What its report says."""
    with CampaignData(campaign) as data:
        return collect(data)


def test_what_is_beside_a_probe_is_told() -> None:
    assert point_title(QUIET) == "UDP over IPv4, 200-byte datagrams at 100 packets/s, forward, engine"
    assert point_title(LOADED) == (
        "UDP over IPv4, 200-byte datagrams at 100 packets/s, forward, beside a TCP stream, engine"
    )
    both = ECHO.model_copy(update={"background": "tcp-both"})
    assert "beside a TCP stream both ways, engine" in point_title(both)


def test_both_are_headlines_and_alone_comes_first(content: Content) -> None:
    assert [section.point for section in content.sections] == [ECHO, QUIET, LOADED]
    assert [section.point for section in headline_sections(content.sections)] == [ECHO, QUIET, LOADED]


def test_the_answer_says_what_it_was_without_the_stream(content: Content) -> None:
    alone, loaded = (one for one in comparisons(content) if one.question == "delay")
    assert alone.alone == ()
    assert [(one.treatment, one.point) for one in loaded.alone] == [
        (OPEN, QUIET),
        (SHORT, QUIET),
        (LONG, QUIET),
    ]
    text = " ".join(render(content, Illustrations()).split())
    assert (
        "beside a TCP stream, engine, gateways in namespaces: of the encrypted tunnels "
        "<strong>wireguard-go</strong> adds the least delay, 41.0 ms at the median"
    ) in text
    assert (
        "Without the TCP stream: plain IP 0.100 ms, wireguard-go 0.200 ms, ssh-vpn/aes128-gcm 0.400 ms."
    ) in text
    assert text.count("Without the TCP stream") == 1
    assert (
        "The stream adds 39.9 ms to plain IP, 40.8 ms to wireguard-go, 300 ms to ssh-vpn/aes128-gcm." in text
    )
    assert "A TCP stream beside measured traffic is one connection" in text


def test_the_table_has_what_the_stream_carried_in_place_of_the_wire(content: Content) -> None:
    groups = {
        section.point: [group.heading for group in groups_of(columns_for(section))]
        for section in content.sections
    }
    assert "Background" in groups[LOADED]
    assert "Added to p50, ms" in groups[LOADED]
    assert "Added to p50, ms" not in groups[QUIET]
    assert "Wire" not in groups[LOADED]
    assert "Background" not in groups[QUIET]
    assert "Wire" in groups[QUIET]


def test_one_figure_shows_each_tunnel_alone_and_beside_the_stream(content: Content) -> None:
    (pair,) = loads(content.sections)
    assert [section.point for section in pair] == [QUIET, LOADED]
    (drawing,) = background_figures(pair)
    assert drawing.title == "One-way delay in ms, alone and beside a background"
    assert "ssh-vpn/aes128-gcm, gateways in namespaces: alone 0.400, beside a TCP stream 300" in (
        drawing.alternative
    )
    for words in ("alone", "beside a TCP stream", "median", "99 %"):
        assert f">{words}<" in drawing.svg
    assert "NaN" not in drawing.svg
    (chapter,) = illustrate(content).of_backgrounds
    assert chapter.title == point_title(QUIET)
    assert chapter.drawings[0].name == drawing.name
    assert drawing.name in {one.name for one in illustrate(content).all}


def test_the_streams_own_time_is_traffic_too(campaign: Path) -> None:
    with CampaignData(campaign) as data:
        assert data.traffic_seconds() == 9 * 5.0 + 3 * BACKGROUND_SECONDS
