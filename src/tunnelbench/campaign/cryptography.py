"""How fast the cryptography of a campaign's tunnels is alone: a tunnel is not faster than that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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

    Raises UserError where a lab can't be built.
    """
    by_place: dict[tuple[str, str], list[Treatment]] = {}
    for treatment, runtime in wanted:
        by_place.setdefault((at_tunnel_ends(treatment, topology)[0], runtime), []).append(treatment)
    found: list[CryptographyRecord] = []
    for (image, runtime), treatments in by_place.items():
        alone = await _time(images[image], Runtime(runtime), treatments)
        found += [_record(treatment, runtime, alone[_suite(treatment)]) for treatment in treatments]
    return found


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
