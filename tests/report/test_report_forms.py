"""Figures in the forms of published studies, and that their number is bounded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from synthetic_campaign import TCP, TUNNELS, UDP, Invented, write_campaign

from tunnelbench.report.client_figures import client_figures
from tunnelbench.report.collect import collect
from tunnelbench.report.content import Content, Result
from tunnelbench.report.families import families
from tunnelbench.report.html import MOST_FOLDED, render
from tunnelbench.report.illustrations import MOST_FAMILIES, MOST_POINTS, Illustrations, illustrate
from tunnelbench.store.read import CampaignData
from tunnelbench.study.points import Point

SIZES = (128, 512, 1024, 1408)
NAMED = ("open/none", "ipsec-manual/aes128-sha1", "ipsec-manual/3des-sha1")
FEW = tuple(tunnel for tunnel in TUNNELS if tunnel.tunnel in NAMED)


def at(payload: int, **changed: object) -> Point:
    return TCP.model_copy(update={"payload_bytes": payload, **changed})


def written(directory: Path, points: tuple[Point, ...], tunnels: tuple[Invented, ...] = FEW) -> Content:
    with CampaignData(write_campaign(directory, 2, tunnels, points)) as data:
        return collect(data)


def test_lines_over_the_payload(tmp_path: Path) -> None:
    content = written(tmp_path, tuple(map(at, SIZES)))
    (family,) = families(content.sections)
    assert family.sizes == SIZES
    (chapter,) = illustrate(content).over_payload
    (drawing,) = chapter.drawings
    assert drawing.title == "Throughput in Mbit/s over the payload"
    assert chapter.title == "TCP over IPv4, writes, forward, engine"
    assert drawing.alternative.endswith(" at 1408 bytes")
    assert drawing.svg.count("ipsec-manual/3des-sha1") >= 1


def test_bytes_on_the_wire_are_drawn_over_the_size_of_datagrams(tmp_path: Path) -> None:
    points = tuple(UDP.model_copy(update={"payload_bytes": size}) for size in SIZES)
    (chapter,) = illustrate(written(tmp_path, points)).over_payload
    titles = [drawing.title for drawing in chapter.drawings]
    assert "Bytes on the wire for each byte of payload over the payload" in titles


def test_two_sizes_make_no_line(tmp_path: Path) -> None:
    assert families(written(tmp_path, tuple(map(at, SIZES[:2]))).sections) == []


def test_lines_over_the_number_of_clients(tmp_path: Path) -> None:
    (section,) = written(tmp_path, (TCP,)).sections

    def with_clients(result: Result, clients: int) -> Result:
        treatment = result.treatment.model_copy(update={"clients": clients})
        return replace(result, treatment=treatment, tunnel=treatment.tunnel)

    results = tuple(with_clients(result, clients) for result in section.results for clients in (1, 4, 16))
    drawing, *_ = client_figures(replace(section, results=results))
    assert drawing.title == "Throughput in Mbit/s over the number of clients"
    assert "ipsec-manual/aes128-sha1 (kernel) " in drawing.alternative
    assert drawing.alternative.endswith(" at 16 clients")
    assert list(client_figures(section)) == []


def test_pairs_with_and_without_compression(tmp_path: Path) -> None:
    both = tuple(at(1408, content=content) for content in ("random", "zeros"))
    content = written(tmp_path, both)
    names = {drawing.name for drawing in illustrate(content).all}
    assert not [name for name in names if name.startswith("compression")]


def test_the_number_of_figures_and_tables_is_bounded(tmp_path: Path) -> None:
    points = tuple(at(size, direction=way) for size in range(64, 64 + 40) for way in ("forward", "reverse"))
    content = written(tmp_path, points, FEW[:2])
    assert len(content.sections) == 80
    figures = illustrate(content)
    assert len(figures.of_points) <= MOST_POINTS
    assert len(figures.over_payload) <= MOST_FAMILIES
    page = render(content, Illustrations())
    # Only the main table of a point says what was proven.
    assert page.count('class="evidence">Proven</th>') == 1 + MOST_FOLDED
    assert "39 more points are not shown here" in page


@pytest.mark.parametrize("size", [1, 3])
def test_every_drawing_has_a_name_of_its_own(tmp_path: Path, size: int) -> None:
    content = written(tmp_path, tuple(map(at, SIZES[:size])), TUNNELS)
    names = [drawing.name for drawing in illustrate(content).all]
    assert len(names) == len(set(names))
    assert all(drawing.alternative for drawing in illustrate(content).all)
