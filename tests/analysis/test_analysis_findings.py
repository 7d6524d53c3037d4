"""Every kind of claim against campaigns in which it is true, false, unclear, or not to be tested."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from findings_campaigns import Cell, campaign, cells, correspondence, paper

from tunnelbench.analysis.findings.judge import judge
from tunnelbench.analysis.findings.scope import observed
from tunnelbench.analysis.findings.verdict import Verdict
from tunnelbench.analysis.frames import instance_values
from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.study.cells import expand
from tunnelbench.study.correspondence import Correspondence
from tunnelbench.study.library import bundled
from tunnelbench.study.published import Published, published
from tunnelbench.study.reading import read_study

IPSEC = [("ipsec-manual", f"{cipher}-sha1") for cipher in ("des", "3des", "aes128")]
SPEED = {"des-sha1": 300.0, "3des-sha1": 200.0, "aes128-sha1": 500.0, "none": 1000.0}
SIZES = [64, 256, 512, 1024, 1344, 1408]


def speed(cell: Cell) -> float:
    return SPEED[cell["suite"]]


def verdict(
    trials: pl.DataFrame, claims: dict[str, Any] | Published, means: Correspondence | None = None
) -> Verdict:
    published = claims if isinstance(claims, Published) else paper(claims)
    (found,) = judge(observed(instance_values(trials)), published, means or correspondence())
    check_beginning(found)
    return found


def check_beginning(found: Verdict) -> None:
    """That no name is at the beginning of a sentence, where it would be capitalised."""
    beginnings = ("Nothing ", "No ", "Fewer ", "There ", "The ", "Cipher ", "the ", "for ", "from ")
    assert found.summary.startswith(beginnings)


def compare(better: str, worse: list[str], **more: Any) -> dict[str, Any]:  # noqa: ANN401
    claim = {"metric": "throughput", "better": {"cipher": better}, "worse": {"cipher": worse}, **more}
    return {"compare": claim}


def test_one_that_beats_others() -> None:
    found = verdict(campaign(cells(IPSEC), speed), compare("aes", ["des", "3des"]))
    assert found.outcome == "holds"
    assert found.p_value is not None
    assert found.p_value < 0.001
    assert "the throughput with aes is 1.6" in found.summary
    assert "times that with des" in found.summary
    assert [detail.label for detail in found.details] == ["aes", "des", "3des", "aes / des", "aes / 3des"]
    ratio = found.details[-2]
    assert ratio.low is not None
    assert ratio.high is not None
    assert ratio.low < 5 / 3 * 1.01
    assert ratio.high > 5 / 3 * 0.99
    assert ratio.n == 6


def test_one_that_does_not_beat_all() -> None:
    found = verdict(campaign(cells(IPSEC), speed), compare("des", ["3des", "aes"]))
    assert found.outcome == "does not hold"
    assert "with des is 0.6" in found.summary
    assert "3des" not in found.summary


@pytest.mark.parametrize(
    ("ratio", "outcome"), [(1.3, "holds"), (1.66, "holds"), (1.8, "does not hold"), (None, "holds")]
)
def test_how_many_times_better(ratio: float | None, outcome: str) -> None:
    claim = compare("aes", ["des"], **({} if ratio is None else {"ratio": ratio}))
    assert verdict(campaign(cells(IPSEC), speed, rounds=10), claim).outcome == outcome


def test_equal_things_do_not_beat_each_other() -> None:
    trials = campaign(cells(IPSEC), lambda _: 100.0, rounds=12, noise=0.005)
    assert verdict(trials, compare("aes", ["des"])).outcome == "does not hold"


def test_what_noise_hides_is_undecided_with_the_rounds_it_would_take() -> None:
    trials = campaign(
        cells(IPSEC), lambda cell: 105.0 if "aes" in cell["suite"] else 100.0, 5, noise=0.1, seed=3
    )
    found = verdict(trials, compare("aes", ["3des"]))
    assert found.outcome == "undecided"
    assert found.rounds_needed is not None
    assert found.rounds_needed > 5
    assert found.reason is not None


def test_one_round_decides_nothing() -> None:
    found = verdict(campaign(cells(IPSEC), speed, rounds=1), compare("aes", ["des"]))
    assert (found.outcome, found.rounds_needed) == ("undecided", None)
    assert "one round, no interval" in found.summary
    assert found.details[0].low is None


def test_levels_that_nothing_stands_for() -> None:
    claim = {
        "compare": {"metric": "throughput", "better": {"client_os": "new"}, "worse": {"client_os": "old"}},
        "contradicted": True,
        "note": "and denied",
    }
    found = verdict(campaign(cells(IPSEC), speed), claim, correspondence(client_os="no Windows here"))
    assert found.outcome == "not testable here"
    assert found.reason == "nothing here stands for clients' system new: no Windows here"
    assert found.contradicted
    assert found.note == "and denied"


def test_metrics_and_places_that_were_not_measured() -> None:
    trials = campaign(cells(IPSEC), speed)
    jitter = compare("aes", ["des"], metric="jitter")
    assert verdict(trials, jitter).reason == "no jitter was measured"
    udp = {**compare("aes", ["des"]), "at": {"transport": "udp"}}
    assert verdict(trials, udp).reason == "no throughput was measured at UDP"


def test_less_jitter_is_better() -> None:
    trials = campaign(cells(IPSEC), lambda cell: 100 / speed(cell), metric="jitter")
    found = verdict(trials, compare("aes", ["des"], metric="jitter"))
    assert found.outcome == "holds"
    assert "the jitter with des is 1.6" in found.summary
    assert "times that with aes" in found.summary


def test_vpns_in_different_runtimes_are_compared_by_their_own_plain_ip() -> None:
    tunnels = [
        {**cell, "runtime": "kernel"} for cell in cells([("open", "none"), ("ipsec-manual", "aes128-sha1")])
    ]
    tunnels += cells([("open", "none"), ("openvpn", "aes-128-cbc-sha1")])
    rates = {"kernel": {"open": 1000.0, "ipsec-manual": 500.0}, None: {"open": 9000.0, "openvpn": 900.0}}
    trials = campaign(tunnels, lambda cell: rates[cell.get("runtime")][cell["vpn"]])
    claim = {
        "compare": {
            "metric": "throughput",
            "better": {"vpn": "ipsec"},
            "worse": {"vpn": "openvpn"},
            "ratio": 4,
        }
    }
    published = paper(claim, factors={"vpn": ["ip", "ipsec", "openvpn"]})
    means = correspondence({"vpn": {"ipsec": {"vpn": ["ipsec-manual"]}, "ip": {"vpn": ["open"]}}})
    found = verdict(trials, published, means)
    assert found.outcome == "holds"
    assert "with ipsec relative to plain IP is" in found.summary
    assert found.unit == "ratio to plain IP"


def test_other_vpns_of_the_campaign_do_not_count() -> None:
    tunnels = [*IPSEC, ("wireguard", "chacha20-poly1305"), ("open", "none")]
    trials = campaign(
        cells(tunnels, transport=["tcp", "udp"]),
        lambda cell: (
            (0.1 if cell["vpn"] in ("wireguard", "open") and cell["transport"] == "udp" else 1) * 100
        ),
        noise=0.001,
    )
    claim = {"metric": "throughput", "factor": "transport", "equal_within_percent": 2}
    assert verdict(trials, {"compare": claim}).outcome == "holds"


def test_udp_is_compared_by_its_capacity_where_that_was_searched_for() -> None:
    at_most = campaign(cells(IPSEC, transport=["tcp", "udp"]), lambda _: 100.0)
    found = cells(IPSEC, transport=["udp"], rate=["1 Mbit/s"])
    searched = campaign(found, lambda _: 150.0, metric="capacity")
    faster = {
        "compare": {
            "metric": "throughput",
            "better": {"transport": "udp"},
            "worse": {"transport": "tcp"},
            "ratio": 1.4,
        }
    }
    luck = at_most.filter(pl.col("metric") == "throughput")
    assert verdict(pl.concat([luck, searched]), faster).outcome == "holds"
    assert verdict(luck, faster).outcome == "does not hold"


@pytest.mark.parametrize(("udp", "outcome"), [(1.0, "holds"), (1.1, "holds"), (1.4, "does not hold")])
def test_equality_within_a_margin(udp: float, outcome: str) -> None:
    trials = campaign(
        cells(IPSEC, transport=["tcp", "udp"]),
        lambda cell: speed(cell) * (udp if cell["transport"] == "udp" else 1),
    )
    claim = {"metric": "throughput", "factor": "transport", "equal_within_percent": 15}
    found = verdict(trials, {"compare": claim})
    assert found.outcome == outcome
    assert "against a margin of 15 %" in found.summary


def rank(**claim: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"rank": {"metric": "throughput", "factor": "cipher", **claim}}


@pytest.mark.parametrize(
    ("claim", "outcome"),
    [
        ({"order": ["aes", "des", "3des"]}, "holds"),
        ({"order": ["des", "aes", "3des"]}, "does not hold"),
        ({"first": "aes", "last": "3des"}, "holds"),
        ({"first": "aes", "last": "des"}, "does not hold"),
        ({"first": "des"}, "does not hold"),
    ],
)
def test_ranks(claim: dict[str, Any], outcome: str) -> None:
    trials = campaign(cells([*IPSEC, ("open", "none")]), speed)
    assert verdict(trials, rank(**claim)).outcome == outcome


def test_an_order_over_two_runtimes_is_told_in_one_unit() -> None:
    kernel = cells([("open", "none"), ("ipsec-manual", "aes128-sha1")])
    tunnels = [{**cell, "runtime": "kernel"} for cell in kernel]
    tunnels += cells([("open", "none"), ("openvpn", "aes-128-cbc-sha1"), ("ssh-vpn", "aes128-cbc-sha1")])
    rates = {
        "kernel": {"open": 1000.0, "ipsec-manual": 500.0},
        None: {"open": 9000.0, "openvpn": 1800.0, "ssh-vpn": 900.0},
    }
    trials = campaign(tunnels, lambda cell: rates[cell.get("runtime")][cell["vpn"]])
    claim = {"metric": "throughput", "factor": "vpn", "order": ["ipsec", "openvpn", "ssh-vpn"]}
    published = paper({"rank": claim}, factors={"vpn": ["ip", "ipsec", "openvpn", "ssh-vpn"]})
    means = correspondence({"vpn": {"ipsec": {"vpn": ["ipsec-manual"]}, "ip": {"vpn": ["open"]}}})
    found = verdict(trials, published, means)
    assert (found.outcome, found.unit) == ("holds", "ratio to plain IP")
    assert [detail.label for detail in found.details] == ["ipsec", "openvpn", "ssh-vpn"]
    assert [detail.value for detail in found.details] == pytest.approx([0.5, 0.2, 0.1], rel=0.05)
    assert "Kendall's tau with the published order is 1.00" in found.summary


def test_a_rank_with_a_level_that_was_not_measured() -> None:
    trials = campaign(cells(IPSEC[:2]), speed)
    found = verdict(trials, rank(order=["aes", "des", "3des"]))
    assert (found.outcome, found.reason) == ("undecided", "There are no measurements of cipher aes.")
    assert "Kendall's tau with the published order is 1.00" in found.summary
    assert verdict(trials, rank(first="aes")).reason == "cipher aes was not measured here"


@pytest.mark.parametrize(("swapped", "outcome"), [(False, "holds"), (True, "does not hold")])
def test_an_order_that_is_the_same_everywhere(swapped: bool, outcome: str) -> None:
    def truth(cell: Cell) -> float:
        ahead = (cell["vpn"] == "openvpn") != (swapped and cell["suite"] == "3des-sha1")
        return speed(cell) * (1.5 if ahead else 1)

    tunnels = [(vpn, suite) for vpn in ("ipsec-manual", "openvpn") for _, suite in IPSEC]
    claim = {"rank_stability": {"metric": "throughput", "factor": "vpn", "over": "cipher"}}
    published = paper(claim, factors={"vpn": ["ipsec-manual", "openvpn"], "cipher": ["des", "3des", "aes"]})
    found = verdict(campaign(cells(tunnels), truth), published)
    assert found.outcome == outcome
    assert f"{2 if swapped else 3} of 3 pairs keep their order" in found.summary


def trend(**claim: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"trend": {"metric": "throughput", "over": "payload_bytes", **claim}}


SHAPES: dict[str, Callable[[int], float]] = {
    "rising": lambda size: float(size),
    "falling": lambda size: 1e6 / size,
    "rising-then-falling": lambda size: float(size if size <= 1344 else size / 2),
    "flat": lambda _: 100.0,
}


@pytest.mark.parametrize("true_shape", list(SHAPES))
@pytest.mark.parametrize("claimed", list(SHAPES))
def test_trends(claimed: str, true_shape: str) -> None:
    trials = campaign(
        cells(IPSEC, payload_bytes=SIZES),
        lambda cell: speed(cell) * SHAPES[true_shape](cell["payload_bytes"]),
    )
    found = verdict(trials, trend(shape=claimed))
    rises_in_most = claimed == "rising" and true_shape == "rising-then-falling"
    assert found.outcome == ("holds" if claimed == true_shape or rises_in_most else "does not hold")
    if rises_in_most:
        assert "except from 1344 to 1408 (0.5" in found.summary


@pytest.mark.parametrize(("peak", "outcome"), [(1344, "holds"), (512, "does not hold")])
def test_the_place_of_a_peak(peak: int, outcome: str) -> None:
    trials = campaign(
        cells(IPSEC, payload_bytes=SIZES), lambda cell: SHAPES["rising-then-falling"](cell["payload_bytes"])
    )
    found = verdict(trials, trend(shape="rising-then-falling", peak=peak))
    assert found.outcome == outcome
    if outcome == "holds":
        assert "the highest is at 1344" in found.summary


def test_trends_over_what_was_hardly_varied() -> None:
    trials = campaign(cells(IPSEC, payload_bytes=[64, 1344]), speed)
    assert verdict(trials, trend(shape="rising")).outcome == "not testable here"
    beyond = verdict(trials, trend(shape="rising-then-falling", peak=1344))
    assert beyond.outcome == "not testable here"


def test_compression() -> None:
    effects = {"ipsec-manual": 0.5, "openvpn": 2.0, "ssh-vpn": 1.0}
    suites = {"ipsec-manual": "aes128-sha1", "openvpn": "aes-128-cbc-sha1", "ssh-vpn": "aes128-cbc-sha1"}
    trials = campaign(
        cells(suites.items(), options=["", "compression=yes"], content=["zeros", "random"]),
        lambda cell: 100 * (effects[cell["vpn"]] if cell["options"] and cell["content"] == "zeros" else 1),
    )
    zeros = {"payload": "zeros", "raises": ["openvpn"], "lowers": ["ipsec-manual"], "unchanged": ["ssh-vpn"]}
    random = {"payload": "incompressible", "lowers": ["openvpn"]}
    lacking = {"payload": "zeros", "raises": ["openvpn", "wireguard"]}
    published = paper(
        *({"compression_effect": claim} for claim in (zeros, random, lacking)),
        factors={"vpn": list(suites), "compression": ["off", "on"], "payload": ["zeros", "incompressible"]},
        defaults={"compression": "off"},
    )
    means = correspondence(
        {
            "compression": {"on": {"options": ["compression=yes"]}, "off": {"options": [""]}},
            "payload": {"zeros": {"content": ["zeros"]}, "incompressible": {"content": ["random"]}},
        }
    )
    held, denied, undecided = judge(observed(instance_values(trials)), published, means)
    for found in (held, denied, undecided):
        check_beginning(found)
    assert held.summary.startswith("for openvpn, the throughput with compression on is 2.")
    assert (held.outcome, denied.outcome, undecided.outcome) == ("holds", "does not hold", "undecided")
    assert "There are no measurements of wireguard" in (undecided.reason or "")


def test_defaults_hold_where_a_finding_is_silent() -> None:
    trials = campaign(
        cells(IPSEC, transport=["tcp", "udp"]),
        lambda cell: speed(cell) * (0.1 if cell["transport"] == "udp" and "aes" in cell["suite"] else 1),
    )
    assert verdict(trials, paper(rank(first="aes"), defaults={"transport": "tcp"})).outcome == "holds"
    assert verdict(trials, paper(rank(first="aes"), defaults={"transport": "udp"})).outcome == "does not hold"


@pytest.mark.parametrize("name", ["kth-four-vpns", "kolahi-fedora15", "weerawarna-windows"])
def test_the_bundled_studies_can_judge_their_papers(name: str) -> None:
    everything = catalogue()
    study = read_study(bundled()[name], everything, "standard")
    assert study.published is not None
    trials = campaign(
        (
            {**cell.treatment.model_dump(), **cell.point.model_dump(mode="json")}
            for cell in expand(study, everything)
            if cell.skipped is None
        ),
        lambda cell: {"none": 900.0}.get(cell["suite"], 300.0 if "3des" not in cell["suite"] else 100.0),
        rounds=2,
    )
    found = {
        one.finding: one
        for one in judge(
            observed(instance_values(trials)), published(study.published.source), study.published
        )
    }
    testable = [one for one in found.values() if one.outcome != "not testable here"]
    assert len(testable) >= 5
    for one in testable:
        assert one.summary
        assert one.details
        assert one.test
