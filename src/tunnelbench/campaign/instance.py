"""Runs one instance: brings the tunnel up, has it proven, measures in it, and takes it down."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

from tunnelbench.campaign import system_calls
from tunnelbench.campaign.calibration import with_doubt
from tunnelbench.campaign.capacity import run_point
from tunnelbench.campaign.course import Course
from tunnelbench.campaign.machine_state import MachineWatch
from tunnelbench.campaign.observer import Observer
from tunnelbench.campaign.packets import PacketFiles
from tunnelbench.campaign.predicted import with_prediction
from tunnelbench.campaign.rekeying import measure_rekey
from tunnelbench.campaign.standing import FIRST_REPLY_SECONDS, NotStandingError, Standing, log_tail
from tunnelbench.campaign.trial import Bench
from tunnelbench.campaign.warming import method_for
from tunnelbench.errors import UserError
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.lab import Lab
from tunnelbench.lab.topology import Family
from tunnelbench.plan.rounds import PlannedInstance
from tunnelbench.store.model import InstanceEnd, WarningRecord
from tunnelbench.store.write import CampaignStore
from tunnelbench.tunnels.base import Traffic
from tunnelbench.tunnels.treatments import tunnel_of, variant_of
from tunnelbench.witness.evidence import Evidence
from tunnelbench.witness.witness import await_first_reply, first_traffic

_NO_DATAGRAMS = "that takes datagrams of IPv4, which this VPN doesn't carry"


@dataclass(frozen=True)
class End:
    """How an instance ended."""

    status: InstanceEnd
    reason: str | None = None
    evidence: Evidence | None = None
    log_tail: str | None = None
    all_went_well: bool = False
    """Whether it was proven and every trial has numbers, so that its lab can be trusted with another one."""


async def run_instance(
    instance: PlannedInstance,
    lab: Lab,
    store: CampaignStore,
    identity: int,
    course: Course,
    observer: Observer,
) -> End:
    """Runs a planned instance in an open lab, and says how it ended; the caller stores that."""
    cleanup = AsyncExitStack()
    try:
        return await _measure(instance, lab, store, identity, course, observer, cleanup)
    except (NodeError, UserError) as error:
        return End("failed", str(error))
    finally:
        await asyncio.shield(_clean(cleanup))


async def _clean(cleanup: AsyncExitStack) -> None:
    try:
        await cleanup.aclose()
    except NodeError:
        # Whether anything is left is for the lab's own proof of cleanness to say, and a node that is gone
        # has nothing left.
        return


async def _measure(
    instance: PlannedInstance,
    lab: Lab,
    store: CampaignStore,
    identity: int,
    course: Course,
    observer: Observer,
    cleanup: AsyncExitStack,
) -> End:
    standing = Standing(lab, instance.treatment, cleanup)
    try:
        proof = await standing.rise()
    except NotStandingError as error:
        return End(error.status, str(error), error.evidence, error.log_tail)
    store.prove(identity, proof.evidence, proof.set_up_ms, proof.handshake_ms)

    carried = tunnel_of(instance.treatment).carried(variant_of(instance.treatment))
    first = first_traffic(carried)
    packets = PacketFiles(store.packets, identity) if course.method.packet_log else None
    all_went_well = True
    for position, point in enumerate(instance.points):
        bench = _bench(lab, standing, course, packets)
        if position > 0:
            # What a flood left in a tunnel's queues would stand in the next trial's way.
            await await_first_reply(lab, standing.established, first, FIRST_REPLY_SECONDS)
        method = await method_for(bench, instance, position, course.method, store, identity, observer)
        observer.trial_began(instance, position)
        tried = partial(observer.search_measured, instance, position)
        async with MachineWatch("during") as watch:
            trial = await run_point(bench, point, position, method, tried)
        trial = replace(trial, machine=watch.state)
        if system_calls.is_wanted(instance, trial, bench):
            trial = await system_calls.with_system_calls(bench, trial, method)
        trial = with_doubt(trial, instance.treatment, course.calibrations)
        trial = with_prediction(trial, instance.treatment, lab.topology)
        store.add_trial(identity, trial)
        observer.trial_ended(instance, trial)
        all_went_well &= trial.status == "ok"
        if standing.established.dead() is not None or not all(node.alive for node in lab.nodes.values()):
            return End("failed", trial.reason or "a daemon died", log_tail=log_tail(standing.established))
    if course.method.rekey:
        bench = _bench(lab, standing, course, packets)
        all_went_well &= await _measure_new_keys(bench, carried, store, identity)
    return End("proven", log_tail=log_tail(standing.established), all_went_well=all_went_well)


def _bench(lab: Lab, standing: Standing, course: Course, packets: PacketFiles | None) -> Bench:
    """With the tunnel that is up now."""
    return Bench(
        lab, standing.established, course.socket, course.contents, packets, revive=standing.rise_again
    )


async def _measure_new_keys(
    bench: Bench, carried: frozenset[Traffic], store: CampaignStore, identity: int
) -> bool:
    """Forces new keys and measures what that costs, or stores why not; returns whether all went well."""
    rekey, refusal = bench.established.rekey, bench.established.rekey_refusal
    if rekey is not None and ("udp", Family.IPV4) not in carried:
        refusal = _NO_DATAGRAMS
    if refusal is not None:
        store.add_warning(identity, _no_rekey(refusal))
    if rekey is None or refusal is not None:
        return True
    try:
        store.add_rekey(identity, await measure_rekey(replace(bench, packets=None), rekey))
    except NodeError as error:
        store.add_warning(identity, _no_rekey(str(error)))
        return False
    return True


def _no_rekey(reason: str) -> WarningRecord:
    return WarningRecord(
        "no-rekey",
        f"new keys could not be measured: {reason}",
        "The trials of this instance came before and are not affected.",
    )
