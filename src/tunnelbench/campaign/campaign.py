"""A campaign from a study to its last trial: prepare, run, and go on where an earlier run stopped."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import get_args

from tunnelbench.campaign.calibration import calibrate, settings
from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.campaign.course import Course
from tunnelbench.campaign.cryptography import encrypting, time_cryptography
from tunnelbench.campaign.labs import Labs
from tunnelbench.campaign.machine import versions
from tunnelbench.campaign.machine_state import look
from tunnelbench.campaign.observer import Observer
from tunnelbench.campaign.preparation import Grounds, host_shaping_of, shaping_of, survey
from tunnelbench.campaign.runner import run_plan
from tunnelbench.errors import UserError
from tunnelbench.lab.runtimes import Placement
from tunnelbench.plan.rounds import Plan, instance_key, make_plan
from tunnelbench.store.model import CalibrationRecord, CampaignRecord, InstanceRecord
from tunnelbench.store.read import CampaignData
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell, expand
from tunnelbench.study.contents import read_contents
from tunnelbench.study.model import Method, Study
from tunnelbench.study.reading import parse_study
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.vocabulary import RuntimeChoice

INTERRUPTED = "it was interrupted"
_RUNTIME_CHOICES: tuple[RuntimeChoice, ...] = get_args(RuntimeChoice)


@dataclass(frozen=True)
class Wish:
    """What the user asks for beyond the study; None leaves it to the study."""

    rounds: int | None = None
    budget: float | None = None
    """Seconds."""
    runtime: RuntimeChoice | None = None
    """Where the gateways run."""
    profile: str | None = None
    seed: int | None = None


@dataclass(frozen=True)
class _Prepared:
    study: Study
    contents: Mapping[str, bytes]
    method: Method
    cells: tuple[Cell, ...]
    grounds: Grounds
    plan: Plan


async def start(study_text: str, source: str, out: Path, wish: Wish, observer: Observer) -> str:
    """Runs a study as a new campaign in the directory `out`; returns why it ended.

    `source` is the file of the study; the files that it names are beside it. Raises UserError for a study
    with mistakes, a missing image, a directory that holds a campaign, a full disk.
    """
    folder = Path(source).parent
    study = parse_study(study_text, source, catalogue(), folder, wish.profile)
    prepared = await _prepare(study, read_contents(study, folder), wish)
    record = CampaignRecord(
        id=f"{study.about.id}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
        study_id=study.about.id,
        study_title=study.about.title,
        study_question=study.about.question,
        study_toml=study_text,
        seed=prepared.plan.seed,
        plan={
            "rounds": prepared.method.rounds,
            "budget": prepared.method.budget,
            "runtime": wish.runtime or study.about.runtime,
            "stop": prepared.method.stop,
            "trial": prepared.method.trial,
            "profile": study.profile,
        },
        versions=versions(prepared.grounds.images),
    )
    with CampaignStore.create(out, record, prepared.cells, prepared.contents) as store:
        _note_what_cannot_run(store, prepared)
        return await _run(store, prepared, observer)


async def resume(
    directory: Path, observer: Observer, rounds: int | None = None, budget: float | None = None
) -> str:
    """Goes on with a campaign where it stopped, as it was planned; returns why it ended.

    `rounds` and `budget` (seconds), both in all, replace those of the plan: it then goes on beyond its end.
    Raises UserError as `start` does, and where it has more rounds already.
    """
    with CampaignData(directory) as data:
        record, contents = data.campaign(), data.contents()
        done = max(data.instances()["campaign_round"].drop_nulls(), default=0)
    if rounds is not None and rounds < done:
        raise UserError(
            f"the campaign in {directory} has {done} rounds already",
            advice=f"Give --rounds the number of rounds in all: more than {done}.",
        )
    planned = _wish_of(record)
    wish = replace(planned, rounds=rounds or planned.rounds, budget=budget or planned.budget)
    source = f"the study in {directory}"
    study = parse_study(record.study_toml, source, catalogue(), profile=wish.profile)
    prepared = await _prepare(study, contents, wish)
    with CampaignStore.open(directory) as store:
        store.replan({**record.plan, "rounds": prepared.method.rounds, "budget": prepared.method.budget})
        return await _run(store, prepared, observer)


def _wish_of(record: CampaignRecord) -> Wish:
    rounds, budget, runtime = (record.plan.get(name) for name in ("rounds", "budget", "runtime"))
    profile = record.plan.get("profile")
    return Wish(
        rounds=rounds if isinstance(rounds, int) else None,
        budget=float(budget) if isinstance(budget, int | float) else None,
        runtime=next((choice for choice in _RUNTIME_CHOICES if choice == runtime), None),
        seed=record.seed,
        profile=profile if isinstance(profile, str) else None,
    )


async def _prepare(study: Study, contents: Mapping[str, bytes], wish: Wish) -> _Prepared:
    cells = expand(study, catalogue())
    grounds = await survey(study, cells, wish.runtime)
    method = study.method.override(wish.rounds, wish.budget)
    plan = make_plan(
        cells,
        method.rounds,
        method.seed if wish.seed is None else wish.seed,
        grounds.runtimes,
    )
    return _Prepared(study, contents, method, cells, grounds, plan)


def _note_what_cannot_run(store: CampaignStore, prepared: _Prepared) -> None:
    unplaced: Iterable[tuple[Treatment, Placement]] = (
        (treatment, placement)
        for treatment, placement in prepared.grounds.placements.items()
        if placement.runtime is None
    )
    for position, (treatment, placement) in enumerate(unplaced):
        identity = store.begin_instance(InstanceRecord(1, position, treatment, None, placement.reason))
        store.end_instance(identity, "skipped", placement.reason)


async def _run(store: CampaignStore, prepared: _Prepared, observer: Observer) -> str:
    reasons = {
        instance_key(instance.treatment, instance.runtime): _reason(
            instance.treatment, instance.runtime, prepared
        )
        for instance in prepared.plan.instances
    }
    study = prepared.study
    course = Course(prepared.plan, prepared.method, study.socket, prepared.contents, reasons)
    try:
        store.add_machine_state(await look("before"))
        course = replace(course, calibrations=await _calibrated(store, prepared, course, observer))
        await _time_cryptography(store, prepared, observer)
        wire, hosts = shaping_of(study), host_shaping_of(study)
        grounds = prepared.grounds
        async with Labs(study.about.topology, wire, hosts, grounds.images, grounds.wifi) as labs:
            why = await run_plan(course, labs, store, observer)
        store.add_machine_state(await look("after"))
    except asyncio.CancelledError:
        store.finish("interrupted", INTERRUPTED)
        raise
    except UserError as error:
        # The disk may be full, and then this cannot be written either; the first reason is the one to show.
        _finish_if_possible(store, error)
        raise
    store.finish("finished", why)
    return why


async def _calibrated(
    store: CampaignStore, prepared: _Prepared, course: Course, observer: Observer
) -> Sequence[CalibrationRecord]:
    """What the load generators can do here, measured once in a campaign."""
    with CampaignData(store.directory) as data:
        known = data.calibrations()
    if known:
        return known
    placed = prepared.grounds.runtimes
    wanted = settings(cell for cell in prepared.cells if cell.treatment in placed)
    observer.calibration_began(len(wanted))
    found = await calibrate(wanted, prepared.grounds.images, course)
    store.add_calibrations(found)
    return found


async def _time_cryptography(store: CampaignStore, prepared: _Prepared, observer: Observer) -> None:
    """How fast the tunnels' cryptography is alone, timed once in a campaign."""
    with CampaignData(store.directory) as data:
        known = data.cryptography()
    wanted = encrypting(prepared.plan)
    if known or not wanted:
        return
    observer.cryptography_began(len(wanted))
    store.add_cryptography(
        await time_cryptography(wanted, prepared.study.about.topology, prepared.grounds.images)
    )


def _finish_if_possible(store: CampaignStore, error: UserError) -> None:
    try:
        store.finish("interrupted", error.message)
    except UserError:
        return


def _reason(treatment: Treatment, runtime: str, prepared: _Prepared) -> str:
    placement = prepared.grounds.placements[treatment]
    if placement.runtime is not None and placement.runtime.value == runtime:
        return placement.reason
    return f"the baseline of the tunnels that run in the runtime {runtime}"
