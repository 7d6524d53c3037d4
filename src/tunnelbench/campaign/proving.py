"""Tries tunnels out one by one: up, proven, carrying, down clean, and again with a program killed."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from typing import Literal

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.campaign.labs import LabKey, Labs
from tunnelbench.campaign.standing import Standing
from tunnelbench.campaign.systems import place_tunnels
from tunnelbench.campaign.trial import Bench, run_trial
from tunnelbench.errors import UserError
from tunnelbench.lab import image as images
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Lab
from tunnelbench.lab.runtimes import Placement
from tunnelbench.lab.shaping import Shaping
from tunnelbench.lab.together import together
from tunnelbench.lab.topology import Family
from tunnelbench.study.model import Method
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import SendingRate
from tunnelbench.study.treatment import Treatment, written_options
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Needs, Tunnel
from tunnelbench.tunnels.treatments import tunnel_of, variant_of

Outcome = Literal["works", "blocked", "fails"]
"""`blocked`: it can't be there, and that is known before it is tried."""

_CLIENTS = 2
_METHOD = Method.model_validate({"trial": "1 s", "warm_up": "200 ms", "cool_down": "100 ms"})
_UDP_RATE = SendingRate(2_000_000)
_UDP_PAYLOAD = 1000
_TRIALS = 3
_GENTLY = Shaping(rate=50e6)
"""The wire of what is tried once: full speed shows nothing new, and takes the processor from others."""
_TCP_WRITE = 131_072


@dataclass(frozen=True)
class Attempt:
    """A treatment to try in a topology; hosts run what gateways run."""

    treatment: Treatment
    topology: str
    thorough: bool = True
    """Up twice in the same lab, at full speed, and once more to have a program killed; else once, slowly."""


@dataclass(frozen=True)
class Finding:
    """What came of an attempt."""

    attempt: Attempt
    outcome: Outcome
    reason: str | None = None
    """Why it is blocked, or what failed; None where it works."""
    runtime: str | None = None
    """Where the gateways ran; None where nothing ran."""
    setup_ms: float | None = None
    """Until the first payload came back, the last time."""


def usual_suite(tunnel: Tunnel) -> str:
    """The suite to try where only one is: the first AEAD, else the first of all."""
    return min(tunnel.suites.values(), key=lambda suite: suite.integrity != "with the cipher").name


def home(tunnel: Tunnel) -> str:
    """The topology to try it in where only one is."""
    return "site-to-site" if "site-to-site" in tunnel.topologies else min(tunnel.topologies)


def usual_attempts(vpns: Iterable[str], image: str) -> list[Attempt]:
    """One suite of each VPN, with the defaults of all else."""
    tunnels = [all_tunnels()[name] for name in vpns]
    return [attempt_of(tunnel, image, usual_suite(tunnel)) for tunnel in tunnels]


def attempt_of(
    tunnel: Tunnel,
    image: str,
    suite: str,
    options: str = "",
    *,
    outer: Family | None = None,
    topology: str | None = None,
    clients: int | None = None,
) -> Attempt:
    """One suite of a VPN, with the default of all that is not named; of clients in remote access two."""
    where = topology or home(tunnel)
    treatment = Treatment(
        vpn=tunnel.name,
        suite=suite,
        options=options,
        outer_ip=(outer or tunnel.default_outer).value,
        clients=clients or (_CLIENTS if where == "remote-access" else 1),
        gateway_os=image,
        host_os=image,
        mtu=1500,
    )
    return Attempt(treatment, where)


def whole_matrix(vpns: Iterable[str], image: str) -> list[Attempt]:
    """Every suite, every level of every option, every outer IP version and every topology of these VPNs.

    Each is varied with all others at their default; remote access is tried with two clients. The usual suite
    with the defaults of all else is tried thoroughly, the others once each.
    """
    attempts = [attempt for name in vpns for attempt in _variations(all_tunnels()[name], image)]
    return list(dict.fromkeys(attempts))


def _variations(tunnel: Tunnel, image: str) -> Iterator[Attempt]:
    usual = usual_suite(tunnel)
    yield attempt_of(tunnel, image, usual)
    others = [
        *(attempt_of(tunnel, image, suite) for suite in tunnel.suites if suite != usual),
        *(
            attempt_of(tunnel, image, usual, written_options({option.name: level}))
            for option in tunnel.options.values()
            for level in option.levels[1:]
        ),
        *(
            attempt_of(tunnel, image, usual, outer=family)
            for family in sorted(tunnel.outer_families - {tunnel.default_outer})
        ),
        *(
            attempt_of(tunnel, image, usual, topology=topology)
            for topology in sorted(tunnel.topologies - {home(tunnel)})
        ),
    ]
    yield from (replace(attempt, thorough=False) for attempt in others)


async def try_out(attempts: Sequence[Attempt], at_once: int = 1) -> AsyncGenerator[Finding]:
    """Tries the attempts, so many at once in labs of their own; yields what came of each as it is known.

    Raises UserError where an image is missing or labs don't work.
    """
    arrived: asyncio.Queue[Finding | None] = asyncio.Queue()

    async def row(number: int) -> None:
        async for finding in _one_by_one(attempts[number::at_once]):
            await arrived.put(finding)

    async def all_rows() -> None:
        try:
            await together(*map(row, range(at_once)))
        finally:
            await arrived.put(None)

    trying = asyncio.create_task(all_rows())
    try:
        while (finding := await arrived.get()) is not None:
            yield finding
        await trying
    finally:
        trying.cancel()
        await asyncio.gather(trying, return_exceptions=True)


async def _one_by_one(attempts: Sequence[Attempt]) -> AsyncGenerator[Finding]:
    found = {
        name: images.find(name)
        for name in dict.fromkeys(name for attempt in attempts for name in attempt.treatment.images)
    }
    by_lab: dict[tuple[str, Shaping], list[Attempt]] = {}
    for attempt in attempts:
        wire = Shaping() if attempt.thorough else _GENTLY
        by_lab.setdefault((attempt.topology, wire), []).append(attempt)
    for (topology, wire), wanted in by_lab.items():
        async with Labs(topology, wire, Shaping(), found) as labs:
            placements = await _placements(wanted, topology, found)
            for attempt in wanted:
                yield await _try(attempt, placements, labs)


async def _placements(
    attempts: Iterable[Attempt], topology: str, found: Mapping[str, Image]
) -> dict[Treatment, Placement | str]:
    """Where each treatment runs, or the objection to it."""
    objections: dict[Treatment, Placement | str] = {}
    needs: dict[Treatment, Needs] = {}
    for treatment in (attempt.treatment for attempt in attempts):
        objection = catalogue().vpns[treatment.vpn].objection(treatment, topology)
        if objection is None:
            needs[treatment] = tunnel_of(treatment).needs(variant_of(treatment))
        else:
            objections[treatment] = objection
    return objections | await place_tunnels(needs, topology, found)


async def _try(attempt: Attempt, placements: Mapping[Treatment, Placement | str], labs: Labs) -> Finding:
    placement = placements[attempt.treatment]
    if isinstance(placement, str):
        return Finding(attempt, "blocked", placement)
    if placement.runtime is None:
        return Finding(attempt, "blocked", placement.reason)
    treatment = attempt.treatment
    key = LabKey.of(treatment, placement.runtime)
    try:
        lab = await labs.get(key)
        setup_ms = 0.0
        for sending in (False, True) if attempt.thorough else (True,):
            setup_ms = await _carries(lab, treatment, sending)
            await _goes_clean(labs, key)
            lab = await labs.get(key)
        if attempt.thorough:
            await _survives_a_kill(lab, treatment)
            await _goes_clean(labs, key)
    except (NodeError, UserError, _FailureError) as error:
        if labs.has(key):
            await labs.discard(key)
        return Finding(attempt, "fails", str(error), placement.runtime)
    return Finding(attempt, "works", None, placement.runtime, setup_ms)


class _FailureError(Exception):
    """What an attempt failed in."""


async def _carries(lab: Lab, treatment: Treatment, sending: bool) -> float:
    """Brings it up, has it proven, and may send TCP and UDP for a second each; returns the set-up in ms."""
    carried = tunnel_of(treatment).carried(variant_of(treatment))
    async with AsyncExitStack() as cleanup:
        standing = Standing(lab, treatment, cleanup)
        proof = await standing.rise()
        bench = Bench(lab, standing.established)
        for point in _points():
            if sending and (point.transport, Family(point.ip)) in carried:
                await _sends(bench, point)
    return proof.set_up_ms


async def _sends(bench: Bench, point: Point) -> None:
    """Sends for a second; a trial that a busy machine spoilt is made again."""
    trouble = ""
    for _ in range(_TRIALS):
        trial = await run_trial(bench, point, 0, _METHOD)
        if trial.status == "ok" and trial.metrics.get("throughput"):
            return
        trouble = trial.reason or "nothing arrived"
        if bench.established.dead() is not None:
            break
    raise _FailureError(f"{point.transport} over {point.ip}: {trouble}")


async def _survives_a_kill(lab: Lab, treatment: Treatment) -> None:
    """Kills one of its programs while it is up: that it died must be seen."""
    async with AsyncExitStack() as cleanup:
        established = await Standing(lab, treatment, cleanup).bring_up()
        if not established.programs:
            return
        victim = established.programs[-1]
        await victim.signal(signal.SIGKILL)
        await victim.ended()
        if established.dead() is None:
            raise _FailureError(f"{victim.arguments[0]} was killed, and nobody noticed")


async def _goes_clean(labs: Labs, key: LabKey) -> None:
    if left := await labs.settle(key):
        raise _FailureError(f"it left something behind: {'; '.join(left)}")


def _points() -> Iterable[Point]:
    usual = {"ip": "ipv4", "direction": "forward", "load": "engine"}
    yield Point.model_validate(
        {**usual, "transport": "tcp", "payload_bytes": _TCP_WRITE, "rate": None, "streams": 1}
    )
    yield Point.model_validate(
        {
            **usual,
            "transport": "udp",
            "payload_bytes": _UDP_PAYLOAD,
            "rate": _UDP_RATE,
            "sending": "batched",
            "content": "random",
        }
    )
