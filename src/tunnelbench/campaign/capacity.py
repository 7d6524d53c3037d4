"""Runs a trial of which the rate is to be searched for: the search, then a usual trial at what it found."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from tunnelbench.campaign.standing import FIRST_REPLY_SECONDS
from tunnelbench.campaign.trial import Bench, drive, problem_of, run_trial
from tunnelbench.errors import UserError
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.topology import Family
from tunnelbench.load.base import LoadError, NothingArrivedError
from tunnelbench.load.search.base import Trial
from tunnelbench.load.search.capacity import Capacity, Rule, find_capacity
from tunnelbench.store.model import TrialRecord, WarningRecord
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import CAPACITY, MAXIMUM, SendingRate, format_bit_rate
from tunnelbench.witness.witness import await_first_reply

Tried = Callable[[float, float], None]
"""Hears of a rate (bits per second) and what was lost at it (ratio)."""

_WARM_UP_S = 0.1
"""Of a trial of the search: a queue fills in milliseconds."""
_PACE_ERROR = 0.01
"""By how much (ratio) a sender may miss a rate before what it did not send counts as lost."""


async def run_point(bench: Bench, point: Point, position: int, method: Method, tried: Tried) -> TrialRecord:
    """Measures one point; what goes wrong in the lab makes the trial void, and never raises.

    `tried` hears of each rate that a search has tried.

    At `capacity`, the metrics are those of a usual trial at the rate that was found, and those of the search.
    """
    if point.rate != CAPACITY:
        return await run_trial(bench, point, position, method)
    started = datetime.now(UTC)
    search = _Search(replace(bench, packets=None), point, method, tried)
    try:
        found = await search.run()
        await search.drain()
    except (NodeError, UserError) as error:
        return _void(point, position, started, method, problem_of(bench) or str(error))
    if found.rate is None:
        lowest = format_bit_rate(method.capacity.lowest)
        return _void(point, position, started, method, f"even {lowest} lose more than the goal allows")
    here = replace(search.bench, packets=bench.packets)
    trial = await run_trial(here, search.at(found.rate), position, method)
    if trial.status != "ok":
        return replace(trial, point=point)
    return replace(
        trial,
        point=point,
        started=started,
        metrics={**trial.metrics, **search.metrics(found)},
        series={**trial.series, **_course(found)},
        warnings=[
            *trial.warnings,
            *_doubts(found),
            *search.not_held(trial),
            *_deaths(search.killed_by),
        ],
    )


@dataclass
class _Search:
    """The search in a lab: trials by the engine, at the sum of the rates of all clients and directions."""

    bench: Bench
    point: Point
    method: Method
    tried: Tried
    seconds: float = field(default=0.0, init=False)
    """Of traffic so far."""
    killed_by: list[float] = field(default_factory=list[float], init=False)
    """Rates, bits per second, under which the tunnel died."""

    async def run(self) -> Capacity:
        settings = self.method.capacity
        highest = settings.highest or await self._most_sent()
        if highest <= settings.lowest:
            raise LoadError(f"the sender reaches {highest / 1e6:.3g} Mbit/s, no more than the lowest rate")
        return await find_capacity(self.measure, settings, highest)

    async def measure(self, rate: float, seconds: float) -> float:
        """Loss (ratio) at a rate; what was not sent counts as lost."""
        loss = await self._survived(rate, seconds)
        self.tried(rate, loss)
        return loss

    async def _survived(self, rate: float, seconds: float) -> float:
        """A tunnel that dies under a rate doesn't carry it: it is brought up again."""
        try:
            loss = await self._loss(rate, seconds)
        except (NodeError, NothingArrivedError):
            if self.bench.established.dead() is None:
                raise
            loss = 1.0
        if self.bench.established.dead() is None:
            return loss
        if self.bench.revive is None:
            raise NodeError(problem_of(self.bench) or "the tunnel died")
        self.bench = replace(self.bench, established=await self.bench.revive())
        self.killed_by.append(rate)
        return 1.0

    async def _loss(self, rate: float, seconds: float) -> float:
        await self.drain()
        try:
            metrics = await self._drive(self.at(rate), seconds)
        except NothingArrivedError:
            if problem := problem_of(self.bench):
                raise NodeError(problem) from None
            return 1.0
        unsent = 1 - metrics["offered"] * 1e6 / rate
        return 1 - (1 - metrics["loss"]) * (1 - (unsent if unsent > _PACE_ERROR else 0.0))

    async def drain(self) -> None:
        """Waits for an answer through the tunnel: what one rate left in queues would be lost at the next."""
        traffic = (self.point.transport, Family(self.point.ip))
        await await_first_reply(self.bench.lab, self.bench.established, traffic, FIRST_REPLY_SECONDS)

    def at(self, rate: float) -> Point:
        """The point at a rate, of which each client and direction has its part."""
        return self.point.model_copy(update={"rate": SendingRate(max(1, round(rate / self._flows)))})

    def metrics(self, found: Capacity) -> dict[str, float]:
        """What the search found out, as metrics."""
        assert found.rate is not None
        metrics = {
            "capacity": found.rate / 1e6,
            "capacity_trials": float(len(found.trials)),
            "capacity_seconds": self.seconds,
        }
        if found.failed_rate is not None:
            metrics["capacity_upper"] = found.failed_rate / 1e6
        if self.point.payload_bytes is not None:
            metrics["capacity_pps"] = found.rate / 8 / self.point.payload_bytes
        return metrics

    def not_held(self, trial: TrialRecord) -> list[WarningRecord]:
        """That a trial loses more than the goal by more than three standard deviations of such a count."""
        goal, loss = Rule(self.method.capacity).loss_goal, trial.metrics["loss"]
        if loss <= goal:
            return []
        # The loss is that of the worst flow.
        sent = trial.metrics["packets_per_second"] * trial.seconds / (1 - loss) / self._flows
        if loss <= goal + 3 * math.sqrt(goal * (1 - goal) / sent):
            return []
        return [
            WarningRecord(
                "capacity-not-held",
                f"the trial at the capacity that was found lost {100 * loss:.2g} %, where the search allows "
                f"{100 * goal:.2g} %",
                "Raise method.capacity.repeats, or make the search's trials longer (method.capacity.trial).",
            )
        ]

    @property
    def _flows(self) -> int:
        return len(self.bench.lab.topology.clients) * (2 if self.point.direction == "both" else 1)

    async def _most_sent(self) -> float:
        """Bits per second that the sender reaches, whatever becomes of them."""
        try:
            metrics = await self._drive(self.point.model_copy(update={"rate": MAXIMUM}), 1.0)
        except NothingArrivedError as flood:
            # What goes over a stream can stand still under more than it carries.
            return flood.offered * 1e6
        return metrics["offered"] * 1e6

    async def _drive(self, point: Point, seconds: float) -> Mapping[str, float]:
        times = {"trial": _WARM_UP_S + seconds, "warm_up": _WARM_UP_S, "cool_down": 0.0}
        self.seconds += times["trial"]
        method = self.method.model_copy(update=times)
        return (await drive(self.bench, point, method, _no_window)).metrics


def _no_window(opens_in: float, lasts: float) -> None:
    """Nothing is counted while the search is under way."""


def _course(found: Capacity) -> dict[str, list[float]]:
    """Rate (Mbit/s) and loss (ratio) of each trial of the search."""
    trials: tuple[Trial, ...] = found.trials
    return {
        "search_rate": [trial.rate / 1e6 for trial in trials],
        "search_loss": [trial.loss for trial in trials],
    }


def _doubts(found: Capacity) -> list[WarningRecord]:
    if found.failed_rate is not None:
        return []
    return [
        WarningRecord(
            "capacity-not-reached",
            "even the highest rate of the search was carried: the capacity lies there or above",
            "Raise method.capacity.highest; where it isn't given, the load generator itself is the limit.",
        )
    ]


def _deaths(rates: list[float]) -> list[WarningRecord]:
    if not rates:
        return []
    times = "once" if len(rates) == 1 else f"{len(rates)} times"
    return [
        WarningRecord(
            "died-in-search",
            f"the tunnel died {times} while its capacity was searched for, at the least under "
            f"{min(rates) / 1e6:.3g} Mbit/s, and was brought up again each time",
            "Such a rate counts as not carried. The capacity is that of a tunnel that lived.",
        )
    ]


def _void(point: Point, position: int, started: datetime, method: Method, reason: str) -> TrialRecord:
    return TrialRecord(position, point, started, method.window, status="void", reason=reason)
