"""What it costs traffic that a tunnel changes its keys."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from tunnelbench.campaign.trial import Bench, run_trial
from tunnelbench.lab.connection import NodeError
from tunnelbench.store.model import RekeyRecord, TrialRecord
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import SendingRate

_METHOD = Method.model_validate({"trial": "4.4 s", "warm_up": "200 ms", "cool_down": "200 ms"})
_POINT = Point(
    transport="udp",
    ip="ipv4",
    payload_bytes=200,
    rate=SendingRate(1000, "packets/s"),
    direction="forward",
    content="random",
    sending="batched",
    load="engine",
)
_BEFORE_SECONDS = 1.5
"""From the start of the traffic until new keys are asked for."""
_REKEY_SECONDS = 20.0


async def measure_rekey(bench: Bench, rekey: Callable[[], Awaitable[None]]) -> RekeyRecord:
    """Sends the same traffic twice, the second time with new keys in the middle.

    Raises NodeError where new keys can't be had or the traffic can't be measured.
    """
    calm = _measured(await run_trial(bench, _POINT, 0, _METHOD))
    changing = asyncio.create_task(_change(rekey))
    try:
        disturbed = _measured(await run_trial(bench, _POINT, 0, _METHOD))
        seconds = await changing
    finally:
        changing.cancel()
    return RekeyRecord(
        seconds=seconds,
        loss=disturbed["loss"],
        calm_loss=calm["loss"],
        gap_ms=disturbed["arrival_gap_max"],
        calm_gap_ms=calm["arrival_gap_max"],
        latency_ms=disturbed["latency_max"],
        calm_latency_ms=calm["latency_max"],
    )


async def _change(rekey: Callable[[], Awaitable[None]]) -> float:
    await asyncio.sleep(_BEFORE_SECONDS)
    clock = asyncio.get_running_loop().time
    began = clock()
    try:
        async with asyncio.timeout(_REKEY_SECONDS):
            await rekey()
    except TimeoutError:
        raise NodeError(f"there were no new keys within {_REKEY_SECONDS:g} s") from None
    return clock() - began


def _measured(trial: TrialRecord) -> dict[str, float]:
    if trial.status != "ok":
        raise NodeError(f"the traffic around new keys was not measured: {trial.reason}")
    return dict(trial.metrics)
