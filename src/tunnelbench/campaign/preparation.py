"""What a study can be measured on here: its images, and where each of its tunnels can run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from tunnelbench.campaign.systems import place_tunnels
from tunnelbench.errors import UserError
from tunnelbench.lab import image as images
from tunnelbench.lab.features import NETEM, Needs
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Runtime
from tunnelbench.lab.runtimes import Placement, programs_missing
from tunnelbench.lab.shaping import ETHERNET_FRAMING, Shaping
from tunnelbench.lab.wifi import Wifi, simulates_wifi
from tunnelbench.load import drivers
from tunnelbench.plan.rounds import Runtime as PlannedRuntime
from tunnelbench.study.cells import Cell
from tunnelbench.study.model import Study
from tunnelbench.study.systems import read_systems
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.vocabulary import RuntimeChoice
from tunnelbench.tunnels.treatments import tunnel_of, variant_of


@dataclass(frozen=True)
class Grounds:
    """What a study can be measured on."""

    images: Mapping[str, Image]
    """By name."""
    placements: Mapping[Treatment, Placement]
    wifi: Wifi | None = None
    """The hop of Wi-Fi that the study asks for."""

    @property
    def runtimes(self) -> dict[Treatment, PlannedRuntime]:
        """Where the tunnels run that can."""
        return {
            treatment: placement.runtime.value
            for treatment, placement in self.placements.items()
            if placement.runtime is not None
        }


async def survey(study: Study, cells: Iterable[Cell], runtime: RuntimeChoice | None = None) -> Grounds:
    """Finds the images and asks throw-away nodes where tunnels can run; `runtime` replaces the study's.

    Raises UserError where an image is missing, lacks the program of a load, or labs don't work here.
    """
    cells = tuple(cells)
    treatments = list(dict.fromkeys(cell.treatment for cell in cells))
    names = [name for treatment in treatments for name in treatment.images]
    found = {name: images.find(name) for name in dict.fromkeys(names)}
    for image in found.values():
        await _require_load_programs(image, cells)
    wifi = None
    if study.link.wifi_rate is not None:
        by_radio = _with_radios(found.values())
        if by_radio is None:
            reason = _without_radios(next(iter(found.values())))
            return Grounds(found, dict.fromkeys(treatments, Placement(None, reason)))
        wifi = Wifi(study.link.wifi_rate, by_radio)
    needs = {treatment: _needs(treatment, study) for treatment in treatments}
    chosen = runtime or study.about.runtime
    forced = None if chosen == "auto" else Runtime(chosen)
    placements = await place_tunnels(needs, study.about.topology, found, forced)
    return Grounds(found if wifi is None else found | {wifi.image.name: wifi.image}, placements, wifi)


def shaping_of(study: Study) -> Shaping:
    """What a study's link does to packets."""
    link = study.link
    return Shaping(rate=link.rate, delay=link.delay or None, loss=link.loss or None)


def host_shaping_of(study: Study) -> Shaping:
    """What the Ethernet of a study's hosts does to packets."""
    return Shaping(rate=study.link.host_rate, framing=ETHERNET_FRAMING)


def _with_radios(found: Iterable[Image]) -> Image | None:
    """An image whose kernel simulates Wi-Fi: one of those in use, else any that is built."""
    return next(filter(simulates_wifi, (*found, *images.list_images())), None)


def _without_radios(image: Image) -> str:
    return (
        "no image has a kernel that simulates Wi-Fi, a hop of which is in the study's link; this brings one: "
        f"{image.command_from_source}"
    )


async def _require_load_programs(image: Image, cells: Iterable[Cell]) -> None:
    """Raises UserError where the image lacks a program of a load that is to run on it."""
    wanted = {
        cell.point.load
        for cell in cells
        if image.name in read_systems(cell.treatment.host_os).images and not cell.skipped
    }
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
    if not shaping_of(study).needs_emulation:
        return needs
    return replace(needs, features=needs.features | {NETEM})
