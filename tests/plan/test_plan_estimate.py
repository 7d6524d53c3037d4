"""The time that a plan takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.plan.estimate import Durations, estimate_seconds
from tunnelbench.plan.rounds import PlannedInstance, Runtime
from tunnelbench.study.cells import Treatment
from tunnelbench.study.points import Point

RUNTIMES: tuple[Runtime, ...] = ("namespace", "kernel")


def instance(runtime: Runtime, points: int) -> PlannedInstance:
    return PlannedInstance(
        campaign_round=1,
        position=0,
        treatment=Treatment(vpn="open", suite="none", gateway_os="bookworm", host_os="bookworm", mtu=1500),
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


def test_trials_and_overheads_add_up() -> None:
    durations = Durations(trial=5.0, overhead={"namespace": 2.0, "kernel": 4.0})
    instances = [instance("namespace", 2), instance("kernel", 1)]
    assert estimate_seconds(instances, durations) == 2 * 5.0 + 2.0 + 5.0 + 4.0
    assert estimate_seconds([], durations) == 0


def test_an_unknown_overhead_is_not_guessed() -> None:
    with pytest.raises(KeyError, match="kernel"):
        estimate_seconds([instance("kernel", 1)], Durations(5.0, {"namespace": 2.0}))


instances = st.lists(st.builds(instance, st.sampled_from(RUNTIMES), st.integers(0, 4)), max_size=5)


@given(instances, instances, st.integers(0, 100), st.integers(0, 100))
def test_parts_add_up_to_the_whole(
    done: list[PlannedInstance], left: list[PlannedInstance], trial: int, overhead: int
) -> None:
    durations = Durations(trial, {"namespace": overhead, "kernel": 2 * overhead})
    assert estimate_seconds([*done, *left], durations) == estimate_seconds(
        done, durations
    ) + estimate_seconds(left, durations)
