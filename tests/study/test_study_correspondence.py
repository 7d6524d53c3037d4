"""What stands for the levels of a paper, and what is said of names that mean nothing."""

from __future__ import annotations

import pytest

from tunnelbench.study.catalogue import Catalogue
from tunnelbench.study.correspondence import Correspondence
from tunnelbench.study.reading import StudyError, parse_study

STUDY = """
[study]
id = "again"
title = "Again"
question = "Which?"
[factors]
tunnel = ["ipsec-manual/aes128-sha1"]
[published]
source = "kth-four-vpns"
"""

LEVELS = {
    "vpn": {"ip": {"vpn": ["open"]}},
    "cipher": {"aes-128-cbc": {"suite": ["aes128-sha1", "aes-128-cbc-sha1"]}},
}


def test_listed_levels_and_those_that_stand_for_themselves() -> None:
    correspondence = Correspondence.model_validate({"source": "kth-four-vpns", "levels": LEVELS})
    assert correspondence.selection("vpn", "ip") == {"vpn": ("open",)}
    assert correspondence.selection("cipher", "aes-128-cbc") == {"suite": ("aes128-sha1", "aes-128-cbc-sha1")}
    assert correspondence.selection("vpn", "openvpn") == {"vpn": ("openvpn",)}
    assert correspondence.selection("transport", "tcp") == {"transport": ("tcp",)}
    assert correspondence.selection("payload_bytes", 1344) == {"payload_bytes": (1344,)}


@pytest.mark.parametrize(
    ("factor", "level"),
    [("cipher", "3des-168-cbc"), ("server_os", "windows-2003"), ("payload_bytes", "below 1024")],
)
def test_levels_for_which_nothing_stands(factor: str, level: str) -> None:
    correspondence = Correspondence.model_validate({"source": "kth-four-vpns", "levels": LEVELS})
    assert correspondence.selection(factor, level) is None


def test_a_study_has_it(catalogue: Catalogue) -> None:
    text = (
        STUDY
        + '[published.levels.payload]\nzeros = { content = ["zeros"] }\n[published.notes]\nvpn = "ours"\n'
    )
    study = parse_study(text, "again.toml", catalogue)
    assert study.published is not None
    assert study.published.notes == {"vpn": "ours"}
    assert study.published.selection("payload", "zeros") == {"content": ("zeros",)}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('[published.levels.colour]\nred = { vpn = ["open"] }', "unknown factor 'colour'"),
        (
            '[published.levels.vpn]\nipsek = { vpn = ["open"] }',
            "unknown level 'ipsek'. Did you mean 'ipsec'?",
        ),
        ('[published.levels.vpn]\nipsec = { vnp = ["open"] }', "unknown column 'vnp'. Did you mean 'vpn'?"),
        ('[published.levels.vpn]\nipsec = { vpn = ["ipsec-manul"] }', "unknown vpn 'ipsec-manul'"),
        ('[published.levels.cipher]\naes-128-cbc = { suite = ["aes"] }', "unknown suite 'aes'"),
        ('[published.levels.transport]\ntcp = { transport = ["sctp"] }', "transport is never 'sctp'"),
        ('[published.levels.vpn]\nipsec = { mtu = ["big"] }', "mtu is never 'big'"),
        ('[published.levels.vpn]\nipsec = ["open"]', "published.levels.vpn.ipsec"),
        ('[published.notes]\ncolour = "none"', "unknown factor 'colour'"),
    ],
)
def test_names_that_mean_nothing_are_told_with_their_line(
    catalogue: Catalogue, table: str, message: str
) -> None:
    with pytest.raises(StudyError) as error:
        parse_study(STUDY + table + "\n", "again.toml", catalogue)
    assert message in error.value.message
    assert error.value.problems[0].line >= len(STUDY.splitlines())


def test_an_unknown_paper(catalogue: Catalogue) -> None:
    with pytest.raises(StudyError, match=r"again\.toml:9: published\.source: there is no published study"):
        parse_study(STUDY.replace("kth-four-vpns", "kth"), "again.toml", catalogue)
