"""The time that a plan takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.plan.estimate import (
    BACKGROUND_SECONDS,
    REKEY_SECONDS,
    SYSTEM_CALLS_SECONDS,
    USUAL_DURATIONS,
    Durations,
    Span,
    counting,
    estimate,
    rounds_within,
    span_of,
)
from tunnelbench.plan.rounds import PlannedInstance, Runtime
from tunnelbench.study.cells import Treatment
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point

DURATIONS = Durations(
    origin="a table",
    trial=Span(0, 1, 2),
    instance={"namespace": Span(1, 2, 3), "kernel": Span(10, 20, 30)},
    instance_of={("openvpn", "namespace"): Span(5, 6, 7)},
)
METHOD = Method.model_validate({"trial": "4 s", "rounds": 10, "rounds_min": 2})


def instance(vpn: str, runtime: Runtime, points: int) -> PlannedInstance:
    return PlannedInstance(
        campaign_round=1,
        position=0,
        treatment=Treatment(vpn=vpn, suite="none", gateway_os="bookworm", host_os="bookworm", mtu=1500),
        runtime=runtime,
        points=tuple(
            Point(
                transport="tcp",
                ip="ipv4",
                payload_bytes=size + 1,
                rate=None,
                direction="forward",
                load="engine",
            )
            for size in range(points)
        ),
    )


@pytest.mark.parametrize(
    ("instances", "expected"),
    [
        ([], Span(0, 0, 0)),
        ([instance("open", "namespace", 1)], Span(5, 7, 9)),
        ([instance("open", "kernel", 2)], Span(18, 30, 42)),
        ([instance("openvpn", "namespace", 1)], Span(9, 11, 13)),
        ([instance("openvpn", "kernel", 0), instance("open", "namespace", 0)], Span(11, 22, 33)),
    ],
)
def test_the_parts_are_added_up(instances: list[PlannedInstance], expected: Span) -> None:
    assert estimate(instances, METHOD, DURATIONS) == expected


def test_a_background_takes_its_time() -> None:
    alone = instance("open", "namespace", 2)
    first, second = alone.points
    beside = first.model_copy(update={"background": "tcp"})
    loaded = alone.model_copy(update={"points": (beside, second)})
    longer = estimate([loaded], METHOD, DURATIONS).usual - estimate([alone], METHOD, DURATIONS).usual
    assert longer == BACKGROUND_SECONDS


def test_new_keys_take_their_time() -> None:
    one = [instance("open", "namespace", 0)]
    rekeying = METHOD.model_copy(update={"rekey": True})
    assert estimate(one, rekeying, DURATIONS).usual == 2 + REKEY_SECONDS


def test_system_calls_are_counted_once_for_each_tunnel_in_namespaces() -> None:
    plan = [
        instance("open", "namespace", 1),
        instance("openvpn", "namespace", 3),
        instance("openvpn", "kernel", 1),
        instance("tinc", "namespace", 0),
    ]
    assert counting(plan, DURATIONS) == Span(0, 1 + SYSTEM_CALLS_SECONDS, 2 + SYSTEM_CALLS_SECONDS)


@pytest.mark.parametrize(
    ("budget", "expected"),
    [
        (1000, (10, 10, 10)),
        (100, (2, 4, 9)),
        (1, (2, 2, 2)),
    ],
)
def test_rounds_that_a_budget_has_room_for(budget: float, expected: tuple[int, int, int]) -> None:
    assert rounds_within(budget, Span(10, 20, 40), Span(5, 10, 20), METHOD) == expected


def test_a_span_of_few_samples_has_their_extremes() -> None:
    assert span_of([3.0]) == Span(3, 3, 3)
    assert span_of([1.0, 2.0, 6.0]) == Span(1, 3, 6)
    assert span_of([float(number) for number in range(11)]) == Span(1, 5, 9)


@given(st.lists(st.floats(0, 1000), min_size=1, max_size=40))
def test_a_span_is_in_order(samples: list[float]) -> None:
    span = span_of(samples)
    assert span.low <= span.usual <= span.high
    assert min(samples) <= span.low + 1e-9
    assert span.high <= max(samples) + 1e-9


def test_what_is_usual_is_known_of_both_runtimes() -> None:
    both = [instance("open", "namespace", 1), instance("open", "kernel", 1)]
    span = estimate(both, METHOD, USUAL_DURATIONS)
    assert 0 < span.low < span.usual < span.high
