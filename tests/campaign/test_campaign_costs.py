"""What a window cost, from what nodes counted before it and after it."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import cast

import pytest

from tunnelbench.campaign.costs import MACHINE, node_costs
from tunnelbench.lab.lab import Lab, Runtime
from tunnelbench.lab.messages import Counters, KernelTime, ProcessorTime


def runtime(_: str) -> Runtime:
    return Runtime.NAMESPACE


LAB = cast("Lab", SimpleNamespace(plan=SimpleNamespace(runtime=runtime)))
NOTHING = KernelTime(user=0.0, system=0.0, softirq=0.0, interrupt=0.0, idle=0.0, stolen=0.0)


def counted(seconds: float, processes: ProcessorTime, kernel: KernelTime) -> dict[str, Counters]:
    return {"gw1": Counters(clock=round(seconds * 1e9), processes=processes, kernel=kernel)}


def test_the_machine_is_what_was_not_idle_whatever_its_ticks_saw() -> None:
    idle = ProcessorTime(user=0.0, system=0.0, queued=None, voluntary_switches=0, involuntary_switches=0)
    busy = ProcessorTime(user=0.5, system=1.0, queued=None, voluntary_switches=9, involuntary_switches=1)
    processors = os.cpu_count() or 1
    # Of two seconds, three quarters of one processor were busy, of which the ticks saw half a second.
    sampled = KernelTime(
        user=0.2, system=0.3, softirq=0.0, interrupt=0.0, idle=2 * processors - 1.75, stolen=0.25
    )
    costs = node_costs(LAB, counted(10, idle, NOTHING), counted(12, busy, sampled))
    assert costs["gw1"]["total"] == pytest.approx(0.75)
    assert costs[MACHINE]["total"] == pytest.approx(0.75)
    assert costs[MACHINE]["user"] == pytest.approx(0.1)
