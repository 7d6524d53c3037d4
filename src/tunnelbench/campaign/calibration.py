"""What the load generators themselves can do: measured between two hosts with nothing between them.

A number that comes close to it says more of the generator than of the tunnel.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

from tunnelbench.campaign.course import Course
from tunnelbench.campaign.systems import images_by_node
from tunnelbench.campaign.trial import Bench, run_trial
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Lab, LabPlan
from tunnelbench.lab.topology import TOPOLOGIES
from tunnelbench.store.model import CalibrationRecord, TrialRecord, WarningRecord
from tunnelbench.study.cells import Cell
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import MAXIMUM, parse_sending_rate
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels.base import gateways
from tunnelbench.tunnels.plain import TUNNEL

_TOPOLOGY = TOPOLOGIES["host-to-host"]
_MOST_SIZES = 5
"""Payload sizes of one kind of traffic that are calibrated, so that a study of many begins before long."""
_QUIET_RATE = parse_sending_rate("1000pps")
"""At which the delay floor and the pacing error are measured: far below what any machine can do."""
_METHOD = {"trial": 1.3, "warm_up": 0.3, "cool_down": 0.0}
_CLOSE = 0.9
"""The share of a generator's own highest throughput from which on it counts as the bottleneck."""

Setting = tuple[str, int, Point]
"""Systems of the hosts, MTU and point."""


def settings(cells: Iterable[Cell]) -> tuple[Setting, ...]:
    """What is to be calibrated for these cells: each generator as fast as it can, and at a quiet rate.

    Streams only: how many requests are answered, and when, is for the network to say.
    """
    sizes: dict[tuple[str, int, Point], set[int]] = {}
    for cell in cells:
        if cell.skipped or not _is_stream(cell.point) or cell.point.payload_bytes is None:
            continue
        kind = (cell.treatment.host_os, cell.treatment.mtu, _of_any_size(_as_fast_as_possible(cell.point)))
        sizes.setdefault(kind, set()).add(cell.point.payload_bytes)
    wanted: list[Setting] = []
    for (host_os, mtu, kind), of_kind in sizes.items():
        chosen = _spread_out(sorted(of_kind))
        wanted += [(host_os, mtu, _of_size(kind, size)) for size in chosen]
        if kind.transport == "udp":
            wanted.append((host_os, mtu, _of_size(kind.model_copy(update={"rate": _QUIET_RATE}), chosen[0])))
    return tuple(wanted)


async def calibrate(
    wanted: Sequence[Setting], images: Mapping[str, Image], course: Course
) -> list[CalibrationRecord]:
    """Measures the settings, those of the same systems and MTU in one lab.

    A generator that can't be measured is recorded with the reason: a campaign doesn't fail for that. Raises
    UserError where a lab can't be built.
    """
    found: list[CalibrationRecord] = []
    for host_os, mtu in dict.fromkeys((host_os, mtu) for host_os, mtu, _ in wanted):
        points = [setting[2] for setting in wanted if setting[:2] == (host_os, mtu)]
        by_node = images_by_node(_TOPOLOGY, host_os, host_os, images)
        trials = await _measure(points, by_node, mtu, course)
        found += [
            CalibrationRecord(host_os, mtu, trial.point, trial.metrics, trial.reason) for trial in trials
        ]
    return found


async def _measure(
    points: Sequence[Point], images: Mapping[str, Image], mtu: int, course: Course
) -> list[TrialRecord]:
    method = course.method.model_copy(update=_METHOD)
    async with Lab(LabPlan(_TOPOLOGY, images, {}, mtu)) as lab, AsyncExitStack() as cleanup:
        established = await TUNNEL.up(*gateways(lab), TUNNEL.variant("none"), cleanup)
        bench = Bench(lab, established, course.socket, course.contents)
        return [await run_trial(bench, point, position, method) for position, point in enumerate(points)]


def with_doubt(
    trial: TrialRecord, treatment: Treatment, calibrations: Iterable[CalibrationRecord]
) -> TrialRecord:
    """The trial, with a warning where what arrived is close to the most that its generator can send."""
    found, highest = trial.metrics.get("throughput"), _highest(trial.point, treatment, calibrations)
    if found is None or highest is None or found < _CLOSE * highest:
        return trial
    warning = WarningRecord(
        "generator-bound",
        f"{found:.4g} Mbit/s arrived, and {trial.point.load} reaches {highest:.4g} Mbit/s here without any "
        "gateway or tunnel: the load generator may have been the bottleneck",
        "Take this as what the tunnel carries at least. Larger payloads, more streams or a machine with more "
        "processors show more.",
    )
    return replace(trial, warnings=[*trial.warnings, warning])


def _highest(point: Point, treatment: Treatment, calibrations: Iterable[CalibrationRecord]) -> float | None:
    """The most that arrived of this kind of traffic: of the calibrated sizes, that next to the point's."""
    if not _is_stream(point):
        return None
    kind = _of_any_size(_as_fast_as_possible(point))
    alike = [
        record
        for record in calibrations
        if (record.host_os, record.mtu) == (treatment.host_os, treatment.mtu)
        and _of_any_size(record.point) == kind
        and "throughput" in record.metrics
    ]
    if not alike:
        return None
    size = point.payload_bytes or 0
    nearest = min(alike, key=lambda record: abs((record.point.payload_bytes or 0) - size))
    return nearest.metrics["throughput"]


def _is_stream(point: Point) -> bool:
    return point.transport != "icmp" and point.profile == "constant"


def _as_fast_as_possible(point: Point) -> Point:
    """Of all points that differ in what costs a generator nothing, one that stands for all."""
    rate = MAXIMUM if point.transport == "udp" else None
    return point.model_copy(
        update={"ip": "ipv4", "rate": rate, "direction": "forward", "congestion_control": None}
    ).without_background


def _of_any_size(point: Point) -> Point:
    return _of_size(point, None)


def _of_size(point: Point, payload_bytes: int | None) -> Point:
    return point.model_copy(update={"payload_bytes": payload_bytes})


def _spread_out(sizes: Sequence[int]) -> Sequence[int]:
    """At most `_MOST_SIZES` of them: the first, the last, and others in equal steps between."""
    if len(sizes) <= _MOST_SIZES:
        return sizes
    step = (len(sizes) - 1) / (_MOST_SIZES - 1)
    return [sizes[round(number * step)] for number in range(_MOST_SIZES)]
