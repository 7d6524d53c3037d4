"""How fast the cryptography of a campaign's tunnels is alone: a tunnel is not faster than that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tunnelbench.campaign.systems import at_tunnel_ends
from tunnelbench.ciphers.measure import Alone, Suite, time_suites
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Runtime
from tunnelbench.plan.rounds import Plan
from tunnelbench.store.model import CryptographyRecord
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels.base import Tunnel, Variant
from tunnelbench.tunnels.treatments import tunnel_of, variant_of

Wanted = tuple[Treatment, str]
"""A treatment, and the runtime of its gateways."""


def encrypting(plan: Plan) -> Sequence[Wanted]:
    """The treatments of a plan that encrypt, each once."""
    everything = ((instance.treatment, instance.runtime) for instance in plan.instances)
    return list(dict.fromkeys(wanted for wanted in everything if variant_of(wanted[0]).suite.encrypts))


async def time_cryptography(
    wanted: Iterable[Wanted], topology: str, images: Mapping[str, Image]
) -> list[CryptographyRecord]:
    """Times each suite once for each image and runtime; what can't be timed is recorded with the reason.

    Of two gateways with an image each, the record is of the slower. Raises UserError where a lab can't be
    built.
    """
    ends = {one: _timed_on(one[0], topology) for one in wanted}
    found: dict[Wanted, dict[str, Alone]] = {one: {} for one in ends}
    places = dict.fromkeys((image, one[1]) for one, names in ends.items() for image in names)
    for image, runtime in places:
        here = [one for one, names in ends.items() if image in names and one[1] == runtime]
        alone = await _time(images[image], Runtime(runtime), [treatment for treatment, _ in here])
        for one in here:
            found[one][image] = alone[_suite(one[0])]
    return [_record(*one, slowest(by_image)) for one, by_image in found.items()]


def _timed_on(treatment: Treatment, topology: str) -> tuple[str, ...]:
    """The images of both ends; in remote access that of the gateway, which does the work for all clients."""
    ends = at_tunnel_ends(treatment, topology)
    return ends[:1] if topology == "remote-access" else ends


def slowest(by_image: Mapping[str, Alone]) -> Alone:
    """That of the image on which it allows least, whose name it has where there are several.

    What could not be timed comes before all: then nothing is known of the slower one.
    """
    image = min(by_image, key=lambda name: _allows(by_image[name]))
    alone = by_image[image]
    if len(by_image) == 1:
        return alone
    reason = f"on {image}: {alone.reason}" if alone.reason else None
    return replace(alone, implementation=f"{alone.implementation} on {image}", reason=reason)


def _allows(alone: Alone) -> float:
    return alone.cost.mbit_per_second() if alone.cost else 0.0


def suite_alone(tunnel: Tunnel, variant: Variant) -> Suite:
    """What a variant of a VPN encrypts and authenticates with, and where."""
    return Suite(variant.suite.encryption, variant.suite.integrity, tunnel.in_kernel(variant))


async def _time(image: Image, runtime: Runtime, treatments: Iterable[Treatment]) -> Mapping[Suite, Alone]:
    suites = set(map(_suite, treatments))
    try:
        return await time_suites(image, runtime, suites)
    except NodeError as error:
        return {suite: Alone("", None, str(error)) for suite in suites}


def _suite(treatment: Treatment) -> Suite:
    return suite_alone(tunnel_of(treatment), variant_of(treatment))


def _record(treatment: Treatment, runtime: str, alone: Alone) -> CryptographyRecord:
    suite = _suite(treatment)
    return CryptographyRecord(
        treatment,
        runtime,
        suite.encryption,
        suite.integrity,
        alone.implementation,
        alone.cost.ns_per_packet if alone.cost else None,
        alone.cost.ns_per_byte if alone.cost else None,
        alone.reason,
    )
