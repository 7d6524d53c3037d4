"""Trials at given rates through one tunnel, which is brought up again where a rate kills it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from tunnelbench.campaign.standing import FIRST_REPLY_SECONDS
from tunnelbench.campaign.trial import Bench, drive, measure_trial, problem_of
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.topology import Family
from tunnelbench.load.base import NothingArrivedError
from tunnelbench.load.search.base import Trial
from tunnelbench.load.search.holding import Attempt
from tunnelbench.store.model import TrialRecord
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import MAXIMUM, SendingRate
from tunnelbench.witness.witness import await_first_reply

Tried = Callable[[float, float], None]
"""Hears of a rate (bits per second) and what was lost at it (ratio)."""

ResultT = TypeVar("ResultT")

_WARM_UP_S = 0.1
"""Of a short trial: a queue fills in milliseconds."""
_PACE_ERROR = 0.01
"""By how much (ratio) a sender may miss a rate before what it did not send counts as lost."""


@dataclass
class RateTrials:
    """Short and usual trials by the engine, at the sum of the rates of all clients and directions."""

    bench: Bench
    point: Point
    position: int
    method: Method
    tried: Tried
    seconds: float = field(default=0.0, init=False)
    """Of traffic so far, without that of `record`."""
    killed_by: list[float] = field(default_factory=list[float], init=False)
    """Rates, bits per second, under which the tunnel died."""
    attempt: Attempt | None = field(default=None, init=False)
    """The last usual trial."""
    record: TrialRecord | None = field(default=None, init=False)
    """Its numbers, unless the tunnel died under it or stood still."""

    async def most_sent(self) -> float:
        """Bits per second that the sender reaches, whatever becomes of them."""
        try:
            metrics = await self._drive(self.point.model_copy(update={"rate": MAXIMUM}), 1.0)
        except NothingArrivedError as flood:
            # What goes over a stream can stand still under more than it carries.
            return flood.offered * 1e6
        return metrics["offered"] * 1e6

    async def short(self, rate: float, seconds: float) -> float:
        """Loss (ratio) at a rate; what was not sent counts as lost."""
        await self._drain()
        metrics = await self._survived(rate, self._drive(self._at(rate), seconds))
        loss = 1.0 if metrics is None else _lost(metrics, rate)
        self.tried(rate, loss)
        return loss

    async def usual(self, rate: float) -> Attempt:
        """Makes a trial of full length in place of the last one, of which no packet log is kept."""
        self.discard()
        await self._drain()
        measured = measure_trial(self.bench, self._at(rate), self.position, self.method)
        self.record = await self._survived(rate, measured)
        self.attempt = self._judged(rate, self.record)
        self.tried(rate, self.attempt.trial.loss)
        return self.attempt

    def discard(self) -> None:
        """Has the last usual trial be one of which no number is kept."""
        if self.attempt is None:
            return
        self.seconds += self.method.trial
        self.attempt = self.record = None
        if self.bench.packets:
            self.bench.packets.remove(self.position)

    def _judged(self, rate: float, record: TrialRecord | None) -> Attempt:
        if record is None:
            return Attempt(Trial(rate, self.method.window, 1.0), 0.0, None)
        loss = _lost(record.metrics, rate)
        # The loss of both directions is that of the worse one, and each must carry its part of the rate.
        carried = min(record.metrics["throughput"] * 1e6, rate * (1 - loss))
        arrived = record.metrics["packets_per_second"] * record.seconds / self._flows
        return Attempt(Trial(rate, record.seconds, loss), arrived / (1 - loss), carried)

    async def _survived(self, rate: float, trial: Awaitable[ResultT]) -> ResultT | None:
        """None where the tunnel died under the rate, and is up again, or where nothing arrived."""
        try:
            result = await trial
        except NothingArrivedError:
            result = None
        except NodeError:
            if self.bench.established.dead() is None:
                raise
            result = None
        if self.bench.established.dead() is not None:
            await self._revive(rate)
            return None
        if problem := problem_of(self.bench):
            raise NodeError(problem)
        return result

    async def _revive(self, rate: float) -> None:
        if self.bench.revive is None:
            raise NodeError(problem_of(self.bench) or "the tunnel died")
        self.bench = replace(self.bench, established=await self.bench.revive())
        self.killed_by.append(rate)

    async def _drain(self) -> None:
        """Waits for an answer through the tunnel: what one rate left in queues would be lost at the next."""
        traffic = (self.point.transport, Family(self.point.ip))
        await await_first_reply(self.bench.lab, self.bench.established, traffic, FIRST_REPLY_SECONDS)

    def _at(self, rate: float) -> Point:
        """The point at a rate, of which each client and direction has its part."""
        return self.point.model_copy(update={"rate": SendingRate(max(1, round(rate / self._flows)))})

    @property
    def _flows(self) -> int:
        return len(self.bench.lab.topology.clients) * (2 if self.point.direction == "both" else 1)

    async def _drive(self, point: Point, seconds: float) -> Mapping[str, float]:
        times = {"trial": _WARM_UP_S + seconds, "warm_up": _WARM_UP_S, "cool_down": 0.0}
        self.seconds += times["trial"]
        method = self.method.model_copy(update=times)
        return (await drive(replace(self.bench, packets=None), point, method, _no_window)).metrics


def _lost(metrics: Mapping[str, float], rate: float) -> float:
    """Lost by what was to be sent (ratio)."""
    unsent = 1 - metrics["offered"] * 1e6 / rate
    return 1 - (1 - metrics["loss"]) * (1 - (unsent if unsent > _PACE_ERROR else 0.0))


def _no_window(opens_in: float, lasts: float) -> None:
    """Nothing is counted in a short trial."""
