"""How many system calls a tunnel's programs make for each packet.

The kernel counts them, at its tracepoint `raw_syscalls:sys_enter` (perf_event_open(2)), and stops no program
as ptrace would. While it counts, every system call of the machine takes a little longer: so that is done in a
moment of traffic of its own, right after a trial, of which no other number is kept.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import platform
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tunnelbench.campaign.costs import count_wire
from tunnelbench.campaign.trial import Bench, drive
from tunnelbench.errors import UserError
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.lab import Runtime
from tunnelbench.plan.estimate import SYSTEM_CALLS_SECONDS
from tunnelbench.plan.rounds import PlannedInstance
from tunnelbench.store.model import TrialRecord
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point

FIELD = "system_calls_per_packet"
"""Name among the costs of a node."""

_TIMES = {"trial": SYSTEM_CALLS_SECONDS, "warm_up": 0.3, "cool_down": 0.0}
"""Seconds."""
_TRACEPOINTS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))
_NUMBERS = {"x86_64": 298, "aarch64": 241}
"""Of perf_event_open, by architecture."""
_TYPE_TRACEPOINT, _INHERIT, _CLOSE_ON_EXEC = 2, 1 << 1, 8
_ATTRIBUTES = struct.Struct("=IIQQQQQ64x")
"""perf_event_attr: type, size, configuration, period, sample type, read format, flags; the rest is zero."""


def is_wanted(instance: PlannedInstance, trial: TrialRecord, bench: Bench) -> bool:
    """Whether to count after a trial: in the first round, at one point of each tunnel of programs."""
    return (
        instance.campaign_round == 1
        and instance.runtime == Runtime.NAMESPACE
        and trial.status == "ok"
        and trial.point == counted_point(instance.points)
        and bool(bench.established.programs)
    )


def counted_point(points: Iterable[Point]) -> Point | None:
    """Where system calls are counted, whatever the order of points: if it can be TCP, the largest writes."""
    return max(
        (point for point in points if point.question == "throughput"),
        key=lambda point: (
            point.transport == "tcp",
            point.ip == "ipv4",
            point.direction == "forward",
            point.payload_bytes or 0,
            point.key,
        ),
        default=None,
    )


async def with_system_calls(bench: Bench, trial: TrialRecord, method: Method) -> TrialRecord:
    """The trial with FIELD in the costs of its gateways; unchanged where this kernel doesn't let us count."""
    counting: list[asyncio.Task[Mapping[str, float]]] = []

    def window(opens_in: float, lasts: float) -> None:
        for task in counting:
            task.cancel()
        counting.append(asyncio.create_task(_count(bench, trial, opens_in, lasts)))

    short = method.model_copy(update=_TIMES)
    try:
        await drive(replace(bench, packets=None), trial.point, short, window)
        found = await counting[-1]
    except (NodeError, UserError, OSError):
        for task in counting:
            task.cancel()
        return trial
    costs = {
        node: {**fields, FIELD: found[node]} if node in found else fields
        for node, fields in trial.node_costs.items()
    }
    return replace(trial, node_costs=costs)


async def _count(bench: Bench, trial: TrialRecord, opens_in: float, lasts: float) -> Mapping[str, float]:
    """Node to system calls by packets on the wire; empty where nothing was sent."""
    await asyncio.sleep(opens_in)
    lab, direction = bench.lab, trial.point.direction
    with ExitStack() as counters:
        read = {
            gateway: _counter(list(_threads(lab.process_id(gateway))), counters)
            for gateway in lab.topology.gateways
        }
        before, calls = await count_wire(lab, direction), {node: ask() for node, ask in read.items()}
        await asyncio.sleep(lasts)
        after = await count_wire(lab, direction)
        counted = {node: ask() - calls[node] for node, ask in read.items()}
    packets = after.packets - before.packets
    return {node: count / packets for node, count in counted.items()} if packets else {}


def _threads(agent: int) -> Iterator[int]:
    """All threads in a node's process namespace but those of its agent."""
    own = Path(f"/proc/{agent}/ns/pid").stat()
    for process in Path("/proc").iterdir():
        if not process.name.isdecimal() or int(process.name) == agent:
            continue
        try:
            if os.path.samestat((process / "ns/pid").stat(), own):
                yield from (int(thread.name) for thread in (process / "task").iterdir())
        except OSError:
            continue  # It has ended meanwhile.


def _counter(threads: list[int], cleanup: ExitStack) -> Callable[[], int]:
    """Counts system calls of threads and of what they start. Raises OSError where that isn't allowed."""
    event = _ATTRIBUTES.pack(_TYPE_TRACEPOINT, _ATTRIBUTES.size, _tracepoint(), 0, 0, 0, _INHERIT)
    files = [_open_event(event, thread) for thread in threads]
    for file in files:
        cleanup.callback(os.close, file)
    return lambda: sum(struct.unpack("=Q", os.read(file, 8))[0] for file in files)


def _open_event(event: bytes, thread: int) -> int:
    number = _NUMBERS.get(platform.machine())
    if number is None:
        raise OSError(f"the number of perf_event_open isn't known on {platform.machine()}")
    library = ctypes.CDLL(None, use_errno=True)
    file: int = library.syscall(
        number, ctypes.c_char_p(event), thread, -1, -1, ctypes.c_ulong(_CLOSE_ON_EXEC)
    )
    if file < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    return file


def _tracepoint() -> int:
    for place in _TRACEPOINTS:
        identifier = place / "events/raw_syscalls/sys_enter/id"
        if identifier.exists():
            return int(identifier.read_text())
    raise FileNotFoundError("raw_syscalls:sys_enter")
