"""Profiles: what they replace, which is taken, and where mistakes in them are."""

from __future__ import annotations

import pytest

from tunnelbench.errors import UserError
from tunnelbench.study.catalogue import Catalogue
from tunnelbench.study.reading import StudyError, parse_study

BASE = """[study]
id = "one"
title = "One"
question = "Which?"
[factors]
tunnel = ["ipip"]
transport = ["tcp", "udp"]
payload_bytes = { tcp = ["1 KiB"], udp = [500] }
[link]
delay = "1 ms"
[method]
rounds = 7
rounds_min = 3
"""
PROFILES = """[profiles.smoke]
method = { rounds = 3, trial = "2 s" }
factors = { payload_bytes = { udp = [100] } }
[profiles.standard.link]
rate = "1 Mbit/s"
"""


def test_keys_of_a_profile_replace_the_studys_whole(catalogue: Catalogue) -> None:
    smoke = parse_study(BASE + PROFILES, "one.toml", catalogue, profile="smoke")
    assert (smoke.profile, smoke.method.rounds, smoke.method.rounds_min, smoke.method.trial) == (
        "smoke",
        3,
        3,
        2,
    )
    assert (smoke.factors.payload_bytes.udp, smoke.factors.payload_bytes.tcp) == ((100,), (131_072,))
    assert (smoke.link.delay, smoke.factors.tunnel) == (0.001, ("ipip",))


def test_the_standard_is_taken_where_nothing_is_asked_for(catalogue: Catalogue) -> None:
    standard = parse_study(BASE + PROFILES, "one.toml", catalogue)
    assert (standard.profile, standard.link.rate, standard.link.delay) == ("standard", 1_000_000, 0.001)
    alone = parse_study(BASE + PROFILES.replace("standard", "long"), "one.toml", catalogue)
    assert (alone.profile, alone.link.rate) == (None, None)


INHERITING = """[profiles.slow]
inherits = "short"
[profiles.slow.link]
rate = "1 Mbit/s"
[profiles.short]
inherits = "lossy"
method = { rounds = 3 }
[profiles.lossy]
method = { rounds = 5, trial = "2 s" }
[profiles.lossy.link]
rate = "9 Mbit/s"
loss = "1 %"
"""


def test_a_profile_inherits_along_a_chain_and_its_own_keys_come_last(catalogue: Catalogue) -> None:
    slow = parse_study(BASE + INHERITING, "one.toml", catalogue, profile="slow")
    assert (slow.link.rate, slow.link.loss, slow.link.delay) == (1_000_000, 0.01, 0.001)
    assert (slow.method.rounds, slow.method.rounds_min, slow.method.trial) == (3, 3, 2)
    short = parse_study(BASE + INHERITING, "one.toml", catalogue, profile="short")
    assert (short.link.rate, short.method.rounds) == (9_000_000, 3)
    lossy = parse_study(BASE + INHERITING, "one.toml", catalogue, profile="lossy")
    assert lossy.method.rounds == 5


def test_what_is_inherited_wrongly_is_told_once_where_it_stands(catalogue: Catalogue) -> None:
    with pytest.raises(StudyError) as error:
        parse_study((BASE + INHERITING).replace('"1 %"', '"1 s"'), "one.toml", catalogue)
    assert [problem.key for problem in error.value.problems] == ["profiles.lossy.link.loss"]


def test_profiles_that_inherit_from_each_other(catalogue: Catalogue) -> None:
    circle = (BASE + INHERITING).replace("[profiles.lossy]\n", '[profiles.lossy]\ninherits = "short"\n')
    with pytest.raises(StudyError) as error:
        parse_study(circle, "one.toml", catalogue)
    says = "inherits: a profile can't inherit from itself"
    assert [str(problem) for problem in error.value.problems] == [
        f"one.toml:19: profiles.short.{says}: short from lossy from short",
        f"one.toml:22: profiles.lossy.{says}: lossy from short from lossy",
    ]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        (
            "[profiles.smoke]\ncolour = 1",
            "15: profiles.smoke.colour: unknown key 'colour'. Did you mean 'factors'?",
        ),
        (
            "[profiles.smoke.method]\nround = 1",
            "15: profiles.smoke.method.round: unknown key 'round'. Did you mean 'rounds'?",
        ),
        (
            '[profiles.smoke.factors]\n\ntunnel = ["ipsec"]',
            "16: profiles.smoke.factors.tunnel[0]: unknown VPN 'ipsec'",
        ),
        (
            "[profiles.smoke.factors]\npayload_bytes = [100, -1]",
            "15: profiles.smoke.factors.payload_bytes[1]: -1 is negative",
        ),
        (
            "[profiles.smoke.method]\nrounds = 2",
            "14: profiles.smoke.method: rounds_min (3) is more than rounds",
        ),
        (
            '[profiles.smoke.factors]\nload = ["ping"]',
            "15: profiles.smoke.factors.load[0]: ping can't send tcp",
        ),
        (
            '[profiles.smoke]\ninherits = "stndard"\n[profiles.standard]',
            "15: profiles.smoke.inherits: unknown profile 'stndard'. Did you mean 'standard'?",
        ),
        (
            '[profiles.smoke]\ninherits = "smoke"',
            "15: profiles.smoke.inherits: a profile can't inherit from itself: smoke from smoke",
        ),
        (
            "[profiles.smoke]\ninherits = 1",
            "15: profiles.smoke.inherits: ",
        ),
    ],
)
def test_mistakes_are_named_where_they_are(catalogue: Catalogue, profile: str, expected: str) -> None:
    with pytest.raises(StudyError) as error:
        parse_study(f"{BASE}{profile}\n", "one.toml", catalogue)
    assert str(error.value.problems[0]).startswith(f"one.toml:{expected}")


def test_what_is_wrong_with_the_study_is_told_once(catalogue: Catalogue) -> None:
    with pytest.raises(StudyError) as error:
        parse_study((BASE + PROFILES).replace('"ipip"', '"ipop"'), "one.toml", catalogue)
    assert [problem.key for problem in error.value.problems] == ["factors.tunnel[0]"]


def test_levels_that_a_profile_has_no_use_for_may_stay_in_the_study(catalogue: Catalogue) -> None:
    text = (
        BASE.replace("[link]", 'sending = ["segmented"]\n[link]')
        + '[profiles.tcp.factors]\ntransport = ["tcp"]\n'
    )
    assert parse_study(text, "one.toml", catalogue, profile="tcp").factors.transport == ("tcp",)


@pytest.mark.parametrize(
    ("text", "advice"), [(BASE + PROFILES, "Did you mean 'smoke'?"), (BASE, "It has no profiles.")]
)
def test_an_unknown_profile(catalogue: Catalogue, text: str, advice: str) -> None:
    with pytest.raises(UserError, match="the study one has no profile 'smok'") as error:
        parse_study(text, "one.toml", catalogue, profile="smok")
    assert advice in (error.value.advice or "")
