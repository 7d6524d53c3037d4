"""How much of each trial's start to cut off, where a study leaves that to be found: by a pilot of each cell.

A pilot is one trial from its first packet to its last, in the first instance of a cell that comes up. What it
found holds for all trials of the cell, so that they stay alike.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tunnelbench.campaign.observer import Observer
from tunnelbench.campaign.trial import Bench, run_trial
from tunnelbench.load.base import SERIES_STEP_S
from tunnelbench.plan.rounds import PlannedInstance
from tunnelbench.store.model import WarmUpRecord, WarningRecord
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point, Question
from tunnelbench.study.quantity import CAPACITY
from tunnelbench.study.wording import point_title

_USUAL_SECONDS = 0.5
"""Where nothing tells."""

_SERIES: Mapping[Question, Sequence[str]] = {
    "throughput": ("throughput",),
    "capacity": (),  # The rate is yet to be found, and any other would warm up differently.
    "delay": ("latency", "throughput"),
    "round trip": ("packets_per_second",),
    "transactions": ("transactions_per_second",),
}
"""What shows that a trial is under way as it will stay, the best first."""


async def method_for(
    bench: Bench,
    instance: PlannedInstance,
    position: int,
    method: Method,
    store: CampaignStore,
    identity: int,
    observer: Observer,
) -> Method:
    """The method with the warm-up of a cell; where it isn't known a pilot finds it, and it is stored."""
    point = instance.points[position]
    if method.warm_up != "auto":
        return method
    found = _known(store, instance.key, point.key)
    if found is None:
        if point.rate != CAPACITY:
            observer.pilot_began(instance, position)
        found = await _pilot(bench, instance, point, method)
        if found is None:
            return _cutting(method, _USUAL_SECONDS)
        store.add_warm_up(found)
        if not found.is_settled:
            store.add_warning(identity, _never_settles(found))
    return _cutting(method, found.seconds)


def _known(store: CampaignStore, instance: str, point: str) -> WarmUpRecord | None:
    with CampaignData(store.directory) as data:
        found = {(record.instance, record.point): record for record in data.warm_ups()}
    return found.get((instance, point))


async def _pilot(
    bench: Bench, instance: PlannedInstance, point: Point, method: Method
) -> WarmUpRecord | None:
    """What a pilot says; None where it is void, so that the next instance has one of its own."""
    name = f"{instance.treatment.tunnel}, {point_title(point)}"
    usual = WarmUpRecord(instance.key, point.key, name, _USUAL_SECONDS, None, is_settled=True)
    if point.rate == CAPACITY:
        return usual
    whole = method.model_copy(update={"cool_down": 0.0})
    trial = await run_trial(replace(bench, packets=None), point, 0, whole)
    if trial.status != "ok":
        return None
    return warm_up_of(usual, trial.series, point.question)


def warm_up_of(
    usual: WarmUpRecord, series: Mapping[str, Sequence[float]], question: Question
) -> WarmUpRecord:
    """The warm-up that a pilot's series show: the longest, where there is one for each direction."""
    # Here, since it brings scipy along, which takes memory that other campaigns can do without.
    from tunnelbench.analysis.warm_up import warm_up

    for wanted in _SERIES[question]:
        names = [name for name in series if name in (wanted, f"{wanted}_forward", f"{wanted}_reverse")]
        found = [warm_up(_gapless(series[name])) for name in names]
        if found:
            seconds = round(max(one.samples for one in found) * SERIES_STEP_S, 9)
            settled = all(one.is_settled for one in found)
            return replace(usual, seconds=seconds, series=wanted, is_settled=settled)
    return usual


def _gapless(samples: Sequence[float]) -> list[float]:
    """Where nothing arrived there is no delay: the last one known stands for it, or else the first one."""
    first = next((sample for sample in samples if not math.isnan(sample)), 0.0)
    filled: list[float] = []
    for sample in samples:
        filled.append((filled[-1] if filled else first) if math.isnan(sample) else sample)
    return filled


def _cutting(method: Method, seconds: float) -> Method:
    return method.model_copy(update={"warm_up": min(seconds, method.trial / 2)})


def _never_settles(found: WarmUpRecord) -> WarningRecord:
    return WarningRecord(
        "never-settles",
        f"{found.name}: {found.series} was still changing in the second half of the pilot; "
        f"{found.seconds:g} s are cut off, but no warm-up makes such a trial steady",
        "Measure for longer, and look at the course of a trial in the report.",
    )
