"""The bundled studies: every profile names what there is, and those of papers have what the papers had."""

from __future__ import annotations

import tomllib

import pytest

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.study.cells import Cell, expand
from tunnelbench.study.library import bundled
from tunnelbench.study.model import Study
from tunnelbench.study.published import published, published_studies
from tunnelbench.study.reading import read_study

DOCUMENTS = {name: tomllib.loads(path.read_text(encoding="utf-8")) for name, path in bundled().items()}
PROFILES = [
    (name, profile) for name, document in DOCUMENTS.items() for profile in document.get("profiles", [None])
]


def read(name: str, profile: str | None) -> tuple[Study, tuple[Cell, ...]]:
    study = read_study(bundled()[name], catalogue(), profile)
    return study, expand(study, catalogue())


@pytest.mark.parametrize(("name", "profile"), PROFILES)
def test_every_profile_can_be_expanded(name: str, profile: str | None) -> None:
    study, cells = read(name, profile)
    assert study.profile == profile
    assert any(cell.skipped is None for cell in cells)


@pytest.mark.parametrize("name", published_studies())
def test_every_published_study_is_bundled_in_three_lengths(name: str) -> None:
    assert [profile for profile in DOCUMENTS[name]["profiles"] if profile != "wifi"] == [
        *("as-published", "standard", "smoke")
    ]
    study, _ = read(name, "as-published")
    assert study.published is not None
    assert study.published.source == name


@pytest.mark.parametrize("name", ["kolahi-fedora15", "kolahi-windows7"])
def test_the_profile_with_wifi_is_the_standard_one_with_a_hop_of_it(name: str) -> None:
    standard, cells = read(name, "standard")
    wifi, with_wifi = read(name, "wifi")
    assert (standard.link.wifi_rate, wifi.link.wifi_rate) == (None, 100_000_000)
    assert wifi.link.model_copy(update={"wifi_rate": None}) == standard.link
    assert (with_wifi, wifi.method) == (cells, standard.method)


_LEFT_OUT = {
    "narayan-fedora-router": {"windows-xp"},
    "kth-four-vpns": {"aes-192-cbc", "aes-256-cbc"},
}
"""Levels of papers that half an hour has no room for."""


def test_the_capacity_of_udp_is_searched_for_where_findings_of_the_thesis_need_it() -> None:
    _, cells = read("kth-four-vpns", "standard")
    searched = {cell.treatment.tunnel for cell in cells if cell.point.transport == "udp" and not cell.skipped}
    assert searched == {
        *("open", "ipip", "ipsec-manual/aes128-sha1", "openvpn/aes-128-cbc-sha1", "ssh-vpn/aes128-cbc-sha1")
    }


@pytest.mark.parametrize("profile", ["as-published", "standard"])
@pytest.mark.parametrize("name", published_studies())
def test_what_stands_for_a_level_is_measured(name: str, profile: str) -> None:
    study, cells = read(name, profile)
    assert study.published is not None
    left_out = _LEFT_OUT.get(name, set[str]()) if profile == "standard" else set[str]()
    for factor, selections in study.published.levels.items():
        for level, selection in ((level, own) for level, own in selections.items() if level not in left_out):
            found = [
                cell
                for cell in cells
                if cell.skipped is None
                and all(_value(cell, column) in values for column, values in selection.items())
            ]
            assert found, (factor, level)


@pytest.mark.parametrize("factor", ["transport", "ip", "payload_bytes"])
@pytest.mark.parametrize("name", published_studies())
def test_as_published_has_the_levels_of_the_paper(name: str, factor: str) -> None:
    _, cells = read(name, "as-published")
    measured = {_value(cell, factor) for cell in cells if cell.skipped is None}
    asked = {level for level in published(name).factors.get(factor, ()) if level != "64 to 1536"}
    assert asked <= measured


def _value(cell: Cell, column: str) -> object:
    of_treatment = column in type(cell.treatment).model_fields
    return getattr(cell.treatment if of_treatment else cell.point, column)
