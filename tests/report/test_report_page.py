"""The page: complete, self-contained, accessible, and unmoved by hostile text."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from synthetic_campaign import TUNNELS, Invented, campaign_record, write_campaign

from tunnelbench.report.build import build_report
from tunnelbench.report.collect import collect
from tunnelbench.report.content import Content, Doubt
from tunnelbench.report.html import MOST_WARNINGS, render, repeat_command, settings, verdict
from tunnelbench.report.illustrations import Illustrations
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore
from tunnelbench.witness.evidence import Evidence

VOID_ELEMENTS = {"meta", "br", "link", "img", "input", "hr"}


class Page(HTMLParser):
    """The elements of a page in their order, its text, and whether its tags match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID_ELEMENTS:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of all elements with this tag."""
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="session")
def source(report: Path) -> str:
    return (report / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def page(source: str) -> Page:
    return Page(source)


def test_the_page_needs_nothing_but_itself(source: str, page: Page) -> None:
    tags = {tag for tag, _ in page.elements}
    assert tags.isdisjoint({"script", "link", "img", "iframe", "object", "embed", "base", "form"})
    for _, attributes in page.elements:
        assert set(attributes).isdisjoint({"src", "srcset", "data", "action", "background"})
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")
    assert "@import" not in source
    assert re.findall(r"url\((?!#)", source) == []
    assert "@font-face" not in source


def test_tables_can_be_read_aloud(page: Page) -> None:
    assert page.all("th")
    assert all(cell.get("scope") in ("col", "row", "colgroup", "rowgroup") for cell in page.all("th"))
    assert len(page.all("caption")) == len(page.all("table"))
    assert page.all("html") == [{"lang": "en"}]


def test_an_advice_stands_once_however_many_warnings_it_has(content: Content) -> None:
    doubts = tuple(Doubt(None, "unstable-cell", f"cell {n} varies", "Stop other work.", 1) for n in range(9))
    source = render(replace(content, doubts=doubts), Illustrations())
    page = Page(source)
    assert page.text.count("Stop other work.") == 1
    assert all(f"cell {n} varies" in page.text for n in range(9))
    assert f"And {9 - MOST_WARNINGS} more" in page.text
    assert source.index("cell 3 varies") < source.index(f"And {9 - MOST_WARNINGS} more")
    assert "#warnings" in {link.get("href") for link in page.all("a")}


def test_settings_are_told_with_their_units_and_only_where_there_are_any() -> None:
    plan = {"rounds": 2, "budget": None, "stop": "rounds", "trial": 1.5}
    campaign = replace(campaign_record(), plan=plan)
    assert settings(campaign) == [("Rounds", "2"), ("Stop", "rounds"), ("Trial", "1.5 s")]


def test_identifiers_are_unique_and_references_meet_them(page: Page) -> None:
    identifiers = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers))
    references = [
        attributes["aria-labelledby"] for _, attributes in page.elements if "aria-labelledby" in attributes
    ]
    assert set(references) <= set(identifiers)


def test_figures_have_words(page: Page) -> None:
    drawings = page.all("svg")
    assert len(drawings) == 9
    for drawing in drawings:
        assert drawing["role"] == "img"
        assert "wireguard-go/chacha20-poly1305" in (drawing["aria-label"] or "")


def test_figures_follow_the_colours_of_the_page(source: str) -> None:
    assert source.count("currentColor") > 100
    assert "#1f2328" not in source.split("</style>")[1]
    assert 'fill="white"' not in source
    assert "prefers-color-scheme: dark" in source


def test_the_numbers_are_there(page: Page, content: Content) -> None:
    for section in content.sections:
        for result in section.results:
            assert result.throughput is not None
            assert f"{result.throughput.median:.0f}" in page.text
            assert result.tunnel in page.text


def test_everything_that_is_promised_is_there(page: Page) -> None:
    for expected in (
        "User Mode Linux",
        "21 proven and measured, 2 refused by the witness, 2 failed to come up, 3 skipped",
        "the probe's marker was readable between the gateways",
        "sshd on gw2 died while measuring",
        "SSH port forwarding doesn't carry UDP over IPv4",
        "tun0: no such device",
        "Close other programs, or give more rounds.",
        "readable in neither direction (must not be)",
        "readable in both directions (must be, as nothing here encrypts)",
        "esp: 42, arp: 2",
        "7.99",
        "the words of the program",
        "Hop of Wi-Fi, when its lab was built",
        "key_mgmt=WPA2-PSK",
        "whole range holds the true median",
        "45000078000040004032b6c00a000001",
        "Invented Processor 2.0 GHz",
        "openvpn 2.6.3",
        "tunnelbench run study.toml --out again --rounds 4",
    ):
        assert expected in page.text


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    hostile = '<script>alert("x")</script>\'"&lt;{{ 7*7 }}</svg>]]>-->\x1b[31m\u202e'
    places = ["title", "question", "reason", "suite", "log", "advice"]
    text = dict.fromkeys(places, hostile)
    tunnels = (TUNNELS[0], Invented(f"evil/{hostile}", "namespace", 100.0, hostile))
    write_campaign(tmp_path, rounds=1, tunnels=tunnels, text=text)
    with CampaignData(tmp_path) as data:
        source = build_report(data, tmp_path / "report").read_text(encoding="utf-8")
    page = Page(source)
    assert "script" not in {tag for tag, _ in page.elements}
    for part in ('<script>alert("x")</script>', "{{ 7*7 }}", "</svg>]]>-->"):
        assert page.text.count(part) >= 6
    labels = [drawing["aria-label"] or "" for drawing in page.all("svg")]
    assert all('<script>alert("x")</script>' in label for label in labels)


def test_a_campaign_without_results(tmp_path: Path) -> None:
    CampaignStore.create(tmp_path, campaign_record(), []).close()
    with CampaignData(tmp_path) as data:
        page = Page(render(collect(data), Illustrations()))
    assert "No encrypted tunnel has been measured." in page.text
    assert "Nothing has been measured." in page.text
    assert "The campaign was interrupted" in page.text
    assert not page.all("svg")


def test_a_campaign_that_runs_says_so(tmp_path: Path) -> None:
    with CampaignStore.create(tmp_path, campaign_record(), []), CampaignData(tmp_path) as data:
        page = Page(render(collect(data), Illustrations()))
    assert "still running" in page.text


def test_no_word_of_user_mode_linux_where_there_is_none(tmp_path: Path) -> None:
    write_campaign(tmp_path, rounds=1, tunnels=TUNNELS[:1])
    with CampaignData(tmp_path) as data:
        page = Page(render(collect(data), Illustrations()))
    assert "User Mode Linux" not in page.text


def test_the_command_repeats_the_plan() -> None:
    record = campaign_record()
    assert repeat_command(record) == "tunnelbench run study.toml --out again --rounds 4"
    plan = {"rounds": 3, "budget": 300.0, "runtime": "kernel", "profile": "smoke"}
    command = repeat_command(replace(record, plan=plan))
    assert command.endswith("--profile smoke --rounds 3 --budget 300s --runtime kernel")
    assert "--runtime" not in repeat_command(replace(record, plan={"runtime": "auto"}))


@pytest.mark.parametrize(
    ("forward", "reverse", "words"),
    [
        (True, False, "readable from host1 to host2 only (must not be)"),
        (False, True, "readable from host2 to host1 only (must not be)"),
    ],
)
def test_a_marker_seen_one_way(forward: bool, reverse: bool, words: str) -> None:
    assert verdict(Evidence({}, forward, reverse, False, "", "")) == words


def test_it_shows_what_the_load_generators_do_on_their_own(page: Page) -> None:
    text = " ".join(page.text.split())
    assert "The load generators on their own" in text
    assert "7000" in text
    assert "not measured: none of 4 datagrams arrived" in text


def test_cryptography_alone_stands_beside_what_was_reached(tmp_path: Path) -> None:
    with CampaignData(write_campaign(tmp_path)) as data:
        content = collect(data)
    by_tunnel = {row.tunnel: row for row in content.cryptography}
    timed = by_tunnel["ipsec-manual/aes128-sha1"]
    assert timed.allows == pytest.approx(1000.0)
    assert timed.reached is not None
    assert timed.share == pytest.approx(timed.reached / 1000.0)
    assert by_tunnel["wireguard-go/chacha20-poly1305"].share is None
    text = Page(render(content, Illustrations())).text
    assert "Cryptography on its own" in text
    assert "not timed: OpenSSL has no Salsa20" in text


def test_system_calls_have_a_column_where_they_were_counted(content: Content) -> None:
    heading = '<th scope="col">system calls</th>'
    assert heading not in render(content, Illustrations())
    first, *others = content.explained
    assert first.why.busiest is not None
    counted = replace(first, why=replace(first.why, system_calls_per_packet={first.why.busiest: 4.25}))
    page = render(replace(content, explained=(counted, *others)), Illustrations())
    assert heading in page
    assert "<td>4.25</td>" in page
    assert "were counted once for each tunnel of programs in namespaces" in " ".join(page.split())
