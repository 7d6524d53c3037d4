"""The published studies as data, and what is said of a file that is wrong."""

from __future__ import annotations

import pytest

from tunnelbench.errors import UserError
from tunnelbench.study.published import Compare, Rank, Trend, parse_published, published, published_studies

SMALL = """
value = [{ where = "1", metric = "throughput", at = { vpn = "a" }, value = 5, precision = "exact" }]
[study]
id = "small"
question = "Which?"
topology = "site-to-site"
link = "one"
gateways = "two"
hosts = "two"
tool = "one"
[method]
repeats = 3
[factors]
vpn = ["a", "b"]
"""

FINDING = '[[finding]]\nid = "one"\nwhere = "2"\nsays = "One."\n'


@pytest.mark.parametrize(
    ("name", "values", "findings"),
    [
        ("kolahi-fedora15", 16, 8),
        ("kolahi-windows7", 19, 8),
        ("kth-four-vpns", 47, 8),
        ("narayan-fedora-router", 7, 6),
        ("weerawarna-windows", 13, 8),
    ],
)
def test_every_study_is_there(name: str, values: int, findings: int) -> None:
    study = published(name)
    assert name in published_studies()
    assert study.design.id == name
    assert (len(study.values), len(study.findings)) == (values, findings)
    assert len({finding.id for finding in study.findings}) == findings


def test_what_stands_in_a_finding() -> None:
    findings = {finding.id: finding for finding in published("weerawarna-windows").findings}
    claim = findings["3des-slowest"].claim
    assert isinstance(claim, Compare)
    assert claim.better == {"cipher": ("des", "aes")}
    assert claim.worse == {"cipher": ("3des",)}
    assert claim.claimed_ratio is None
    faster = findings["client-os-matters"]
    assert isinstance(faster.claim, Compare)
    assert faster.claim.claimed_ratio == pytest.approx(1.31)
    assert faster.contradicted
    assert faster.note is not None
    bend = findings["fragmentation-drop"].claim
    assert isinstance(bend, Trend)
    assert (bend.shape, bend.peak) == ("rising-then-falling", 1344)


def test_defaults_are_apart_from_factors() -> None:
    study = published("kth-four-vpns")
    assert study.defaults == {"transport": "tcp", "cipher": "aes-128-cbc", "compression": "off"}
    assert tuple(study.factors) == ("vpn", "transport", "cipher", "compression", "payload")
    assert "offered_mbit" in study.factor_names
    ranking = next(finding.claim for finding in study.findings if finding.id == "tcp-ranking")
    assert isinstance(ranking, Rank)
    assert ranking.order == ("ssh-port-forwarding", "ipsec", "ssh-vpn", "openvpn")


def test_levels_that_only_findings_name() -> None:
    assert published("kolahi-windows7").levels_of("suite")[-1] == "any encrypted"
    assert set(published("weerawarna-windows").levels_of("cipher")) == {"des", "3des", "aes"}


def test_an_unknown_study_has_the_nearest_name() -> None:
    with pytest.raises(UserError, match="no published study 'kth-four-vpn'") as error:
        published("kth-four-vpn")
    assert "Did you mean 'kth-four-vpns'?" in (error.value.advice or "")


@pytest.mark.parametrize(
    ("claim", "message"),
    [
        ("", "a finding makes one claim"),
        ('rank = { metric = "throughput", factor = "vpn" }', "a rank needs 'order'"),
        ('compare = { metric = "throughput", better = { vpn = "a" } }', "a comparison needs"),
        ('trend = { metric = "throughput", over = "x", shape = "round" }', "finding.0.trend.shape"),
        ('colour = "red"', "finding.0.colour"),
    ],
)
def test_a_wrong_finding_is_told_with_its_place(claim: str, message: str) -> None:
    with pytest.raises(UserError, match=r"small\.toml: finding\.0") as error:
        parse_published(f"{SMALL}{FINDING}{claim}\n", "small.toml")
    assert message in error.value.message


def test_wrong_toml() -> None:
    with pytest.raises(UserError, match=r"small\.toml: not valid TOML"):
        parse_published("value = [", "small.toml")
