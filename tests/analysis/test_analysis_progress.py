"""Progress from trials, and the stop rules on campaigns whose truth is known."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

import pytest
from analysis_trials import Row, frame, row

from tunnelbench.analysis.progress import progress_of
from tunnelbench.analysis.summary import summarise
from tunnelbench.plan.stopping import stop_rule
from tunnelbench.study.model import Method

METHOD = Method(stop="interval", rounds=40, rounds_min=4, goal=0.02)


def a_round(number: int, spread: float, random: Random) -> Iterator[Row]:
    """Plain IP at about 1000 in a round of its own luck, GRE at 80 % and IPIP at 90 % of that."""
    luck = random.gauss(1, 0.1)
    for vpn, share in (("open", 1.0), ("gre", 0.8), ("ipip", 0.9)):
        yield row(vpn, number, 1000 * luck * share * random.gauss(1, spread))


def run(spread: float, seed: int, method: Method = METHOD) -> tuple[list[Row], str]:
    """A campaign without leaving anything out, until its rule ends it."""
    random, rule, rows = Random(seed), stop_rule(method), list[Row]()
    for number in range(1, method.rounds + 2):
        reason = rule.reason_to_stop(progress_of(frame(rows), [1.0] * (number - 1)))
        if reason is not None:
            return rows, reason
        rows += a_round(number, spread, random)
    raise AssertionError("a campaign ends with its rounds")


def test_what_progress_says_of_a_cell() -> None:
    rows = [row(vpn, number, value) for number in range(1, 7) for vpn, value in (("open", 100), ("gre", 80))]
    rows += [row("gre", number, 1.0, metric="wire_overhead") for number in range(1, 7)]
    baseline, gre = progress_of(frame(rows), [2.0] * 6).cells
    assert baseline.is_baseline
    assert not gre.is_baseline
    assert gre.half_width == pytest.approx(0)
    assert gre.name == "gre, TCP over IPv4, 128 KiB writes, forward, engine"
    assert (gre.instances, gre.variation) == (6, 0.0)
    assert gre.instance.endswith("runtime=namespace")


def test_few_instances_have_no_interval_to_go_by() -> None:
    rows = [row(vpn, number, 100.0) for number in range(1, 4) for vpn in ("open", "gre")]
    assert {cell.half_width for cell in progress_of(frame(rows), [1.0] * 3).cells} == {None}


def test_later_rounds_do_not_count() -> None:
    rows = [row("open", number, 100.0 * number) for number in range(1, 9)]
    assert progress_of(frame(rows), [1.0] * 4) == progress_of(frame(rows[:4]), [1.0] * 4)
    assert progress_of(frame([]), []).cells == ()


def test_a_quiet_machine_is_done_after_the_least_rounds() -> None:
    rows, reason = run(0.002, seed=1)
    assert max(one["campaign_round"] for one in rows) == 4
    assert reason.startswith("in every cell")


@pytest.mark.parametrize("seed", range(5))
def test_a_restless_machine_takes_more_and_a_wild_one_all_rounds(seed: int) -> None:
    rounds = [max(one["campaign_round"] for one in run(spread, seed)[0]) for spread in (0.005, 0.02, 0.2)]
    assert rounds[0] <= rounds[1] <= rounds[2] == 40
    assert "in 0 of 2 cells" in run(0.2, seed)[1]


def test_luck_of_a_round_does_not_prolong_a_campaign_but_fails_the_published_rule() -> None:
    published = Method(stop="published", rounds=35)
    assert len(run(0.002, seed=2)[0]) < len(run(0.002, 2, published)[0])
    assert "in 0 of 3 cells the standard deviation" in run(0.002, 2, published)[1]


def test_the_published_rule_ends_a_campaign_on_a_machine_as_still_as_those_of_the_papers() -> None:
    still = [row(vpn, number, 1000 + number % 3) for number in range(1, 31) for vpn in ("open", "gre")]
    progress = progress_of(frame(still), [1.0] * 30)
    assert (stop_rule(Method(stop="published", rounds=90)).reason_to_stop(progress) or "").startswith(
        "in every cell the standard deviation is below 0.5 % of the mean over at least 30 instances"
    )


def test_what_was_stopped_for_is_true() -> None:
    """Stopping when an interval is narrow favours narrow ones; the ratio must be right all the same."""
    errors = [
        cell.ratio / {"open": 1.0, "gre": 0.8, "ipip": 0.9}[cell.vpn] - 1
        for seed in range(60)
        for cell in ratios(run(0.02, seed)[0])
    ]
    within = sum(abs(error) <= METHOD.goal for error in errors)
    assert within / len(errors) >= 0.9


class Ratio(NamedTuple):
    vpn: str
    ratio: float


def ratios(rows: list[Row]) -> list[Ratio]:
    summary = summarise(frame(rows))
    return [Ratio(one["vpn"], one["ratio"]) for one in summary.iter_rows(named=True) if one["vpn"] != "open"]
