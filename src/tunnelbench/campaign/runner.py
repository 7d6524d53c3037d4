"""Runs a plan: instance after instance, round after round, each trial stored before the next begins."""

from __future__ import annotations

from tunnelbench.campaign.course import Course
from tunnelbench.campaign.instance import End, run_instance
from tunnelbench.campaign.labs import LabKey, Labs
from tunnelbench.campaign.observer import Observer
from tunnelbench.campaign.progress import progress_after
from tunnelbench.errors import UserError
from tunnelbench.lab.lab import Runtime
from tunnelbench.plan.progress import CellProgress
from tunnelbench.plan.rounds import PlannedInstance, instance_key
from tunnelbench.plan.stopping import stop_rule
from tunnelbench.store.model import InstanceRecord, SettledRecord, WarningRecord
from tunnelbench.store.write import CampaignStore


async def run_plan(course: Course, labs: Labs, store: CampaignStore, observer: Observer) -> str:
    """Runs what is not finished yet, and returns why it stopped.

    Raises UserError when a lab cannot be built or the store cannot be written; finished trials are kept.
    """
    finished = {
        (record.campaign_round, instance_key(record.treatment, Runtime(record.runtime).value))
        for record in store.finished_instances()
        if record.runtime is not None
    }
    instances = course.plan.instances
    done = sum((instance.campaign_round, instance.key) in finished for instance in instances)
    observer.campaign_began(instances, done)
    rule = stop_rule(course.method)
    for rounds_done, planned_round in enumerate(course.plan.rounds):
        progress = progress_after(rounds_done, store.directory, rule)
        reason = rule.reason_to_stop(progress)
        if reason is not None:
            return reason
        settled = rule.settled(progress)
        store.add_settled(_settled_record(rounds_done + 1, cell) for cell in settled)
        for planned in planned_round:
            instance = planned.without(cell.point for cell in settled if cell.instance == planned.key)
            if not instance.points:
                observer.instance_left_out(planned)
            elif (instance.campaign_round, instance.key) not in finished:
                await _run_stored(instance, course, labs, store, observer)
    progress = progress_after(len(course.plan.rounds), store.directory, rule)
    return rule.reason_to_stop(progress) or "all that was planned is done"


async def _run_stored(
    instance: PlannedInstance, course: Course, labs: Labs, store: CampaignStore, observer: Observer
) -> None:
    observer.instance_began(instance)
    record = InstanceRecord(
        instance.campaign_round,
        instance.position,
        instance.treatment,
        instance.runtime,
        course.reasons.get(instance.key),
    )
    identity = store.begin_instance(record)
    key = LabKey.of(instance.treatment, Runtime(instance.runtime))
    try:
        lab = await labs.get(key)
    except UserError as error:
        end = End("failed", str(error))
    else:
        end = await run_instance(instance, lab, store, identity, course, observer)
        if end.all_went_well:
            for item in await labs.settle(key):
                store.add_warning(identity, _leftover(item))
        else:
            await labs.discard(key)
    store.end_instance(identity, end.status, end.reason, end.log_tail, end.evidence)
    observer.instance_ended(instance, end.status, end.reason)


def _settled_record(campaign_round: int, cell: CellProgress) -> SettledRecord:
    assert cell.half_width is not None
    return SettledRecord(
        campaign_round, cell.instance, cell.point, cell.name, cell.instances, cell.half_width
    )


def _leftover(item: str) -> WarningRecord:
    return WarningRecord(
        "leftover",
        f"the lab was not as before after the tunnel was taken down: {item}",
        "The lab was built anew for the next instance; if this happens often, report it.",
    )
