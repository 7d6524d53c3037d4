"""A trial of the engine: both ends, what is asked of them, and when, in the clock of each."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from tunnelbench.lab.traffic import DEFAULT_LINGER, Schedule, SocketOptions
from tunnelbench.load.base import Endpoint, LoadError, TrafficHandle, TrafficNode, Workload
from tunnelbench.load.engine.clocks import ClockOffset

_END_S = 5.0
"""How long a job that is stopped may take to end, seconds."""
_GRACE_S = 10.0
"""How much longer than planned a trial may take before it is given up, seconds."""


@dataclass(frozen=True)
class Scene:
    """One trial that is about to begin."""

    client: TrafficNode
    server: TrafficNode
    workload: Workload
    server_clock: ClockOffset
    planned_at: int
    """Of the client's clock, ns."""
    lead: int
    """From planning a trial to its start, ns: both ends must be ready by then."""

    @property
    def client_schedule(self) -> Schedule:
        """The time plan in the client's clock."""
        workload = self.workload
        return Schedule(
            start_at=self.planned_at + self.lead,
            warm_up=_nanoseconds(workload.warm_up_s),
            measure=_nanoseconds(workload.measure_s),
            cool_down=_nanoseconds(workload.cool_down_s),
        )

    @property
    def server_schedule(self) -> Schedule:
        """The same in the server's clock."""
        schedule = self.client_schedule
        start_at = schedule.start_at + self.server_clock.offset
        return Schedule(start_at, schedule.warm_up, schedule.measure, schedule.cool_down)

    @property
    def timeout(self) -> float:
        """When to give the trial up, seconds from now."""
        workload = self.workload
        sending = workload.warm_up_s + workload.measure_s + workload.cool_down_s
        return (self.lead + DEFAULT_LINGER) / 1e9 + sending + _GRACE_S

    @property
    def socket_options(self) -> SocketOptions:
        """What is asked of every socket."""
        asked = self.workload.socket
        return SocketOptions(
            dscp=asked.dscp, ttl=asked.ttl, dont_fragment=asked.dont_fragment or None, buffer=asked.buffer
        )

    def megabits_per_second(self, measured_bytes: int) -> float:
        """The rate of so many bytes in the measured window."""
        return measured_bytes * 8 / self.workload.measure_s / 1e6


async def ended(job: TrafficHandle[object]) -> None:
    """Ends a job and waits until it is no more, so that the next trial finds its port free."""
    await job.stop()
    with suppress(Exception):  # How it ends has been heard, or is of no interest.
        await job.outcome(_END_S)


def reached(connect: Endpoint, listener: TrafficHandle[object]) -> Endpoint:
    """Where the other end reaches a listener, at the port that it got where none is named."""
    if connect.port != 0:
        return connect
    if listener.bound_port is None:
        raise LoadError("the listener does not say on which port it listens")
    return Endpoint(connect.address, listener.bound_port)


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e9)
