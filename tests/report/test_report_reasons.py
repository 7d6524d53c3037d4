"""Reasons, courses and reproductions in a report."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic_campaign import TCP, UDP, campaign_record, write_campaign

from tunnelbench.report.collect import collect
from tunnelbench.report.content import Content, Course
from tunnelbench.report.courses import drawn, thinned
from tunnelbench.report.html import render
from tunnelbench.report.illustrations import illustrate
from tunnelbench.report.reasons import hop_of, link_rate_of
from tunnelbench.report.reproduction import correspondence_of, reproduction
from tunnelbench.store.model import CampaignRecord
from tunnelbench.store.read import CampaignData
from tunnelbench.study.model import Link
from tunnelbench.study.points import Point

REPEATS = '[published]\nsource = "kolahi-fedora15"\n[published.notes]\nip = "as in the paper"\n'


def record(toml: str, **plan: object) -> CampaignRecord:
    return replace(campaign_record(), study_toml=toml, plan=plan)


def test_every_throughput_is_explained_and_plain_ip_by_itself(content: Content) -> None:
    by_tunnel = {(one.result.tunnel, one.result.point.transport): one.why for one in content.explained}
    tunnel = by_tunnel["openvpn/aes-256-gcm", "tcp"]
    assert [ceiling.part for ceiling in tunnel.ceilings][:2] == ["plain IP", "cipher"]
    assert tunnel.busiest in ("gw1", "gw2")
    plain = next(one for one in content.explained if one.result.treatment.is_baseline)
    assert "plain IP" not in [ceiling.part for ceiling in plain.why.ceilings]


def test_the_link_rate_is_that_of_the_study() -> None:
    assert link_rate_of(record('[link]\nrate = "100 Mbit/s"\n')) == 100
    assert link_rate_of(record("")) is None


def test_the_link_rate_is_that_of_the_profile_that_was_run() -> None:
    study = '[link]\nrate = "1 Gbit/s"\n[profiles.slow.link]\nrate = "10 Mbit/s"\n'
    assert link_rate_of(record(study, profile="slow")) == 10
    assert link_rate_of(record(study)) == 1000


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        # Headers of UDP, IP and Ethernet, and what a frame of 802.11 has more than one of Ethernet.
        (UDP, (1400 + 8 + 20 + 14 + 44) / 1400),
        (UDP.model_copy(update={"ip": "ipv6"}), (1400 + 8 + 40 + 14 + 44) / 1400),
        # In two fragments: 1480 and 528 bytes of UDP.
        (UDP.model_copy(update={"payload_bytes": 2000}), (2000 + 8 + 2 * (20 + 14 + 44)) / 2000),
        # A full segment with timestamps.
        (TCP, (1448 + 52 + 14 + 44) / 1448),
        (UDP.model_copy(update={"direction": "both"}), None),
    ],
)
def test_the_hop_of_wifi_carries_frames_around_the_packets_of_plain_ip(
    content: Content, point: Point, expected: float | None
) -> None:
    treatment = content.sections[0].results[0].treatment
    hop = hop_of(Link.model_validate({"wifi_rate": "100 Mbit/s"}), treatment, point)
    assert hop is not None
    assert (hop.rate, hop.bytes_per_byte) == (100, None if expected is None else pytest.approx(expected))
    assert hop_of(Link(), treatment, point) is None


def test_ceilings_of_wifi_stand_in_figure_and_words(tmp_path: Path) -> None:
    with CampaignData(write_campaign(tmp_path, rounds=2, link='wifi_rate = "10 Gbit/s"')) as data:
        content = collect(data)
    for one in content.explained:
        assert [ceiling.part for ceiling in one.why.ceilings][:2] == ["Wi-Fi", "Wi-Fi frames"]
    illustrations = illustrate(content)
    page = render(content, illustrations)
    assert "the airtime of the hop of" in page
    assert "frames of Wi-Fi around plain IP" in page


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=2000))
def test_a_course_is_thinned_to_few_means(samples: list[float]) -> None:
    found = thinned(samples)
    assert 1 <= len(found) <= 240
    slack = 1e-6 * max(samples)
    assert min(samples) - slack <= min(found) <= max(found) <= max(samples) + slack


@pytest.mark.parametrize("samples", [(0.0,), (1.0, 2.0, 3.0)])
def test_a_course_is_drawn_with_words(content: Content, samples: tuple[float, ...]) -> None:
    result = content.sections[0].results[0]
    drawing = ElementTree.fromstring(drawn(Course(result, 1, "throughput", samples)))
    assert drawing.attrib["role"] == "img"
    assert result.tunnel in drawing.attrib["aria-label"]


def test_what_repeats_nothing_has_no_correspondence() -> None:
    assert correspondence_of(record("")) is None


def test_a_reproduction_stands_on_the_page(tmp_path: Path) -> None:
    correspondence = correspondence_of(record(REPEATS))
    assert correspondence is not None
    assert correspondence.source == "kolahi-fedora15"
    with CampaignData(write_campaign(tmp_path, rounds=2)) as data:
        content, trials = collect(data), data.trials()
    found = reproduction(correspondence, trials)
    assert found is not None
    repeated = replace(content, reproduction=found)
    page = render(repeated, illustrate(repeated))
    assert len(found.verdicts) == sum(found.outcomes.values()) > 0
    for verdict in found.verdicts:
        assert f'id="finding-{verdict.finding}"' in page
    assert len(found.besides) > 0
    assert "as in the paper" in page


def test_a_profile_may_repeat_something_else() -> None:
    toml = f'{REPEATS}[profiles.other.published]\nsource = "kth-four-vpns"\n'
    found = correspondence_of(record(toml, profile="other"))
    assert found is not None
    assert found.source == "kth-four-vpns"
