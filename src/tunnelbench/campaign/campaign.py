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
from tunnelbench.campaign.observer import Observer
from tunnelbench.campaign.runner import run_plan
from tunnelbench.campaign.systems import place_tunnels
from tunnelbench.campaign.variants import tunnel_of, variant_of
from tunnelbench.errors import UserError
from tunnelbench.lab import image as images
from tunnelbench.lab.features import NETEM, Needs
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Runtime
from tunnelbench.lab.runtimes import Placement, programs_missing
from tunnelbench.lab.shaping import Shaping
from tunnelbench.load import drivers
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
    images: Mapping[str, Image]
    placements: Mapping[Treatment, Placement]
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
            "profile": study.profile,
        },
        versions=versions(prepared.images),
    )
    with CampaignStore.create(out, record, prepared.cells, prepared.contents) as store:
        _note_what_cannot_run(store, prepared)
        return await _run(store, prepared, observer)


async def resume(directory: Path, observer: Observer) -> str:
    """Goes on with a campaign where it stopped, as it was planned; returns why it ended."""
    with CampaignData(directory) as data:
        record, contents = data.campaign(), data.contents()
    wish = _wish_of(record)
    source = f"the study in {directory}"
    study = parse_study(record.study_toml, source, catalogue(), profile=wish.profile)
    prepared = await _prepare(study, contents, wish)
    with CampaignStore.open(directory) as store:
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
    treatments = list(dict.fromkeys(cell.treatment for cell in cells))
    systems = [system for treatment in treatments for system in (treatment.gateway_os, treatment.host_os)]
    found = {name: images.find(name) for name in dict.fromkeys(systems)}
    for image in found.values():
        await _require_load_programs(image, cells)
    needs = {treatment: _needs(treatment, study) for treatment in treatments}
    runtime = wish.runtime or study.about.runtime
    forced = None if runtime == "auto" else Runtime(runtime)
    placements = await place_tunnels(needs, study.about.topology, found, forced)
    method = study.method.override(wish.rounds, wish.budget)
    plan = make_plan(
        cells,
        method.rounds,
        method.seed if wish.seed is None else wish.seed,
        {
            treatment: placement.runtime.value
            for treatment, placement in placements.items()
            if placement.runtime is not None
        },
    )
    return _Prepared(study, contents, method, cells, found, placements, plan)


async def _require_load_programs(image: Image, cells: Iterable[Cell]) -> None:
    """Raises UserError where the image lacks a program of a load that is to run on it."""
    wanted = {cell.point.load for cell in cells if cell.treatment.host_os == image.name and not cell.skipped}
    programs = {load: drivers()[load].programs for load in sorted(wanted)}
    absent = set(await programs_missing(image, frozenset[str]().union(*programs.values())))
    for load, needed in programs.items():
        if lacking := sorted(needed & absent):
            raise UserError(
                f"the load {load} runs {', '.join(lacking)}, which the image {image.name} lacks",
                advice=f"Build it anew: tunnelbench image build {image.name} --release {image.release}. If "
                f"that does not help, Debian {image.release} has no {load}: use an image of another release, "
                "or another load.",
            )


def _needs(treatment: Treatment, study: Study) -> Needs:
    needs = tunnel_of(treatment).needs(variant_of(treatment))
    if not _shaping(study).needs_emulation:
        return needs
    return replace(needs, features=needs.features | {NETEM})


def _shaping(study: Study) -> Shaping:
    link = study.link
    return Shaping(rate=link.rate, delay=link.delay or None, loss=link.loss or None)


def _note_what_cannot_run(store: CampaignStore, prepared: _Prepared) -> None:
    unplaced: Iterable[tuple[Treatment, Placement]] = (
        (treatment, placement)
        for treatment, placement in prepared.placements.items()
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
        course = replace(course, calibrations=await _calibrated(store, prepared, course, observer))
        await _time_cryptography(store, prepared, observer)
        async with Labs(study.about.topology, _shaping(study), prepared.images) as labs:
            why = await run_plan(course, labs, store, observer)
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
    wanted = settings(prepared.cells)
    observer.calibration_began(len(wanted))
    found = await calibrate(wanted, prepared.images, course)
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
    store.add_cryptography(await time_cryptography(wanted, prepared.study.about.topology, prepared.images))


def _finish_if_possible(store: CampaignStore, error: UserError) -> None:
    try:
        store.finish("interrupted", error.message)
    except UserError:
        return


def _reason(treatment: Treatment, runtime: str, prepared: _Prepared) -> str:
    placement = prepared.placements[treatment]
    if placement.runtime is not None and placement.runtime.value == runtime:
        return placement.reason
    return f"the baseline of the tunnels that run in the runtime {runtime}"
