"""System calls of a program, counted by this machine's kernel where it lets us."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from campaign_points import point
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.campaign import system_calls
from tunnelbench.plan.rounds import PlannedInstance
from tunnelbench.store.model import TrialRecord
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import MAXIMUM, SendingRate
from tunnelbench.study.treatment import Treatment

CALLS = 5000
PROGRAM = f"""
import os, sys
sys.stdin.readline()
for _ in range({CALLS}):
    os.getppid()
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def _permitted() -> None:  # pyright: ignore[reportUnusedFunction]
    try:
        with ExitStack() as cleanup:
            system_calls._counter([os.getpid()], cleanup)  # pyright: ignore[reportPrivateUsage]
    except OSError as error:
        pytest.skip(f"this kernel doesn't let us count system calls: {error}")


@pytest.mark.usefixtures("_permitted")
def test_calls_of_a_program_are_counted() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        with ExitStack() as cleanup:
            counted = system_calls._counter([program.pid], cleanup)  # pyright: ignore[reportPrivateUsage]
            before = counted()
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.stdout.readline() == "done\n"
            calls = counted() - before
        program.communicate("\n")
    assert CALLS <= calls < CALLS + 1000


def test_threads_of_a_node_are_those_in_its_process_namespace() -> None:
    own = os.getpid()
    assert own in list(system_calls._threads(os.getppid()))  # pyright: ignore[reportPrivateUsage]
    assert own not in list(system_calls._threads(own))  # pyright: ignore[reportPrivateUsage]


TUNNEL = Treatment(vpn="openvpn", suite="aes-256-gcm", gateway_os="bookworm", host_os="bookworm", mtu=1500)
SMALL, LARGE = point("udp", 64, rate=MAXIMUM), point("udp", 1400, rate=MAXIMUM)
LARGE_TCP = point("tcp", 131_072)
TCP_POINTS = [point("tcp", 1000), LARGE_TCP, point("tcp", 131_072, ip="ipv6", direction="reverse")]
PACED = point("udp", 1472, rate=SendingRate(1_000_000))


@given(st.permutations([SMALL, *TCP_POINTS, LARGE, PACED]))
def test_every_tunnel_is_counted_at_the_same_point(points: list[Point]) -> None:
    assert system_calls.counted_point(points) == LARGE_TCP


def test_without_tcp_it_is_the_largest_datagrams() -> None:
    assert system_calls.counted_point([SMALL, PACED, LARGE]) == LARGE
    assert system_calls.counted_point([PACED]) is None


@pytest.mark.parametrize(
    ("changed", "tried", "programs", "wanted"),
    [
        ({}, LARGE, ["openvpn"], True),
        ({}, SMALL, ["openvpn"], False),
        ({}, LARGE, [], False),
        ({"campaign_round": 2}, LARGE, ["openvpn"], False),
        ({"runtime": "kernel"}, LARGE, ["openvpn"], False),
    ],
)
def test_it_is_done_once_for_tunnels_of_programs_in_namespaces(
    changed: dict[str, object], tried: Point, programs: list[str], wanted: bool
) -> None:
    levels = {"campaign_round": 1, "position": 0, "runtime": "namespace", "points": (SMALL, LARGE), **changed}
    instance = PlannedInstance.model_validate({"treatment": TUNNEL, **levels})
    bench: Any = SimpleNamespace(established=SimpleNamespace(programs=programs))
    trial = TrialRecord(0, tried, datetime.now(UTC), 1.0, metrics={"throughput": 1.0})
    void = TrialRecord(0, tried, datetime.now(UTC), 1.0, status="void", reason="gone")
    assert system_calls.is_wanted(instance, trial, bench) == wanted
    assert not system_calls.is_wanted(instance, void, bench)
