"""Questions answered from campaigns with known truths."""

from __future__ import annotations

import pytest
from findings_campaigns import Cell, campaign, cells, correspondence, paper

from tunnelbench.analysis.findings.questions import answer_paper
from tunnelbench.analysis.findings.scope import observed
from tunnelbench.analysis.frames import instance_values
from tunnelbench.study.published import Published, published

IPSEC = [("ipsec-manual", f"{cipher}-sha1") for cipher in ("des", "3des", "aes128")]
SPEED = {"des-sha1": 300.0, "3des-sha1": 100.0, "aes128-sha1": 500.0, "none": 1000.0}
SYSTEMS = {
    "client_os": {"old": {"host_os": ["bookworm"]}, "new": {"host_os": ["trixie"]}},
    "server_os": {"2003": {"gateway_os": ["bookworm"]}, "2008": {"gateway_os": ["trixie"]}},
}


def questions(*asked: dict[str, object]) -> Published:
    main, *sub = ({"asks": "Which?", **one} for one in asked)
    return paper(
        questions={"main": main, "sub": sub},
        factors={
            "suite": ["des-sha1", "3des-sha1", "aes128-sha1"],
            "client_os": ["old", "new"],
            "server_os": ["2003", "2008"],
            "transport": ["tcp"],
        },
    )


def truth(cell: Cell) -> float:
    return SPEED[cell["suite"]] * (1.2 if cell["gateway_os"] == "trixie" else 1.0)


VARIED = cells([*IPSEC, ("open", "none")], gateway_os=["bookworm", "trixie"], host_os=["bookworm", "trixie"])


def test_the_best_combination_and_what_rivals_it() -> None:
    asked = questions({"best": ["suite", "client_os", "server_os"]})
    (answer,) = answer_paper(
        observed(instance_values(campaign(VARIED, truth, noise=0.02))), asked, correspondence(SYSTEMS)
    )
    (sentence,) = answer.sentences
    assert sentence.startswith("Throughput on TCP: aes128-sha1 with ")
    assert "with 2008 has the most: " in sentence
    assert "with 2008 can't be told apart from it; 3des-sha1 with " in sentence
    assert "with 2003 has the least, " in sentence


def test_whether_a_factor_matters() -> None:
    asked = questions({"varies_with": "client_os"}, {"varies_with": "server_os"})
    client, server = answer_paper(
        observed(instance_values(campaign(VARIED, truth, 8, noise=0.01))), asked, correspondence(SYSTEMS)
    )
    assert client.sentences[0].startswith("Throughput on TCP: no, not by 2 %; ")
    assert server.sentences[0].startswith("Throughput on TCP: yes; 2003 has 0.83")
    assert "the factor explains 0.0 % of the variance." in client.sentences[0]
    share = float(server.sentences[0].rpartition("explains ")[2].partition("%")[0])
    assert 0.5 < share < 5


def test_the_best_for_each() -> None:
    asked = questions({"best": ["server_os"], "for_each": "suite"})
    (answer,) = answer_paper(
        observed(instance_values(campaign(VARIED, truth))), asked, correspondence(SYSTEMS)
    )
    assert len(answer.sentences) == 3
    assert answer.sentences[0].startswith("Throughput on TCP: with des-sha1, 2008 has the most: ")


def test_what_can_not_be_answered_says_why() -> None:
    asked = questions({"varies_with": "client_os"})
    bare = correspondence(client_os="no Windows")
    (answer,) = answer_paper(observed(instance_values(campaign(VARIED, truth))), asked, bare)
    assert answer.sentences == (
        "Throughput on TCP: can't be said, "
        "fewer than two levels of clients' system were measured: no Windows.",
    )
    assert answer_paper(observed(instance_values(campaign(VARIED, truth))), paper(), bare) == ()


def test_one_round_tells_none_apart() -> None:
    trials = campaign(cells(IPSEC), lambda cell: SPEED[cell["suite"]], rounds=1)
    (answer,) = answer_paper(
        observed(instance_values(trials)), questions({"best": ["suite"]}), correspondence()
    )
    assert "one round tells none apart" in answer.sentences[0]


@pytest.mark.parametrize("name", ["weerawarna-windows"])
def test_the_papers_questions_can_be_read(name: str) -> None:
    found = published(name).questions
    assert found is not None
    assert found.main.best == ("suite", "client_os", "server_os")
    assert [one.varies_with for one in found.sub] == ["client_os", "server_os", None, None]
