"""Runs a trial of which the rate is to be searched for: the search, then usual trials until one holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from tunnelbench.campaign.rate_trials import RateTrials, Tried
from tunnelbench.campaign.trial import Bench, problem_of, run_trial
from tunnelbench.errors import UserError
from tunnelbench.lab.connection import NodeError
from tunnelbench.load.base import LoadError
from tunnelbench.load.search.capacity import Capacity, Rule, find_capacity
from tunnelbench.load.search.holding import MOST_TRIALS, Attempt, hold
from tunnelbench.store.model import TrialRecord, WarningRecord
from tunnelbench.study.model import CapacitySearch, Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import CAPACITY, format_bit_rate


async def run_point(bench: Bench, point: Point, position: int, method: Method, tried: Tried) -> TrialRecord:
    """Measures one point; what goes wrong in the lab makes the trial void, and never raises.

    `tried` hears of each rate that a search has tried.

    At `capacity`, the metrics are those of a usual trial at the highest rate that one held, and those of the
    search.
    """
    if point.rate != CAPACITY:
        return await run_trial(bench, point, position, method)
    started = datetime.now(UTC)
    trials = RateTrials(bench, point, position, method, tried)
    try:
        found = await _search(trials, method.capacity)
        held = await hold(trials.usual, found, Rule(method.capacity))
    except (NodeError, UserError) as error:
        return _void(point, position, started, method, problem_of(trials.bench) or str(error))
    trial, attempt = trials.record, trials.attempt
    if held.rate is None or trial is None or attempt is None:
        trials.discard()
        return _void(point, position, started, method, _nothing_held(found, held, method.capacity))
    return replace(
        trial,
        point=point,
        started=started,
        metrics={**trial.metrics, **_metrics(held, held.rate, point, trials.seconds)},
        series={**trial.series, **_course(held)},
        warnings=[
            *trial.warnings,
            *_not_reached(held),
            *_not_held(attempt, Rule(method.capacity).loss_goal),
            *_deaths(trials.killed_by),
        ],
    )


async def _search(trials: RateTrials, settings: CapacitySearch) -> Capacity:
    highest = settings.highest or await trials.most_sent()
    if highest <= settings.lowest:
        raise LoadError(f"the sender reaches {highest / 1e6:.4g} Mbit/s, no more than the lowest rate")
    return await find_capacity(trials.short, settings, highest)


def _metrics(held: Capacity, rate: float, point: Point, seconds: float) -> dict[str, float]:
    """What the search found out, as metrics."""
    metrics = {
        "capacity": rate / 1e6,
        "capacity_trials": float(len(held.trials)),
        "capacity_seconds": seconds,
    }
    if held.failed_rate is not None:
        metrics["capacity_upper"] = held.failed_rate / 1e6
    if point.payload_bytes is not None:
        metrics["capacity_pps"] = rate / 8 / point.payload_bytes
    return metrics


def _course(held: Capacity) -> dict[str, list[float]]:
    """Rate (Mbit/s) and loss (ratio) of each trial of the search."""
    return {
        "search_rate": [trial.rate / 1e6 for trial in held.trials],
        "search_loss": [trial.loss for trial in held.trials],
    }


def _not_reached(held: Capacity) -> list[WarningRecord]:
    if held.failed_rate is not None:
        return []
    return [
        WarningRecord(
            "capacity-not-reached",
            "even the highest rate of the search was carried: the capacity lies there or above",
            "Raise method.capacity.highest; where it isn't given, the load generator itself is the limit.",
        )
    ]


def _not_held(last: Attempt, loss_goal: float) -> list[WarningRecord]:
    if last.holds(loss_goal):
        return []
    return [
        WarningRecord(
            "capacity-not-held",
            f"none of {MOST_TRIALS} usual trials at ever lower rates held; the last, of which the numbers "
            f"are, lost {100 * last.trial.loss:.2g} %, where the search allows {100 * loss_goal:.2g} %",
            "Raise method.capacity.repeats, or make the search's trials longer (method.capacity.trial).",
        )
    ]


def _deaths(rates: Sequence[float]) -> list[WarningRecord]:
    if not rates:
        return []
    times = "once" if len(rates) == 1 else f"{len(rates)} times"
    return [
        WarningRecord(
            "died-in-search",
            f"the tunnel died {times} while its capacity was searched for, at the least under "
            f"{min(rates) / 1e6:.4g} Mbit/s, and was brought up again each time",
            "Such a rate counts as not carried. The capacity is that of a tunnel that lived.",
        )
    ]


def _nothing_held(found: Capacity, held: Capacity, settings: CapacitySearch) -> str:
    lowest = format_bit_rate(settings.lowest)
    if found.rate is None:
        return f"even {lowest} lose more than the goal allows"
    if held.rate is None:
        return f"short trials passed, but in usual ones even {lowest} lose more than the goal allows"
    return f"under the last of {MOST_TRIALS} usual trials at ever lower rates the tunnel died or stood still"


def _void(point: Point, position: int, started: datetime, method: Method, reason: str) -> TrialRecord:
    return TrialRecord(position, point, started, method.window, status="void", reason=reason)
