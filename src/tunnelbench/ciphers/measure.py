"""Times suites on a node like a gateway of theirs: the same image, runtime and kernel."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tunnelbench.ciphers import openssl
from tunnelbench.ciphers.algorithms import Algorithm, cipher, integrity
from tunnelbench.ciphers.cost import NOTHING, Cost
from tunnelbench.ciphers.kernel import time_in_kernel
from tunnelbench.ciphers.openssl import time_with_openssl
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.node import Node
from tunnelbench.lab.topology import TOPOLOGIES

_TOPOLOGY = TOPOLOGIES["host-to-host"]


@dataclass(frozen=True)
class Suite:
    """The titles of what encrypts and authenticates, and whether the kernel does it."""

    encryption: str
    integrity: str
    in_kernel: bool


@dataclass(frozen=True)
class Alone:
    """What a suite costs on its own."""

    implementation: str
    """Such as `Linux 6.1.176` or `OpenSSL 3.0.17`."""
    cost: Cost | None
    reason: str | None = None
    """Why there is no cost."""


async def time_suites(image: Image, runtime: Runtime, suites: Collection[Suite]) -> Mapping[Suite, Alone]:
    """Times what the suites are made of, each algorithm once, in a lab of its own.

    Takes about half a second for an algorithm of the kernel, two for one of OpenSSL. Only encryption is
    timed: a packet is encrypted on one gateway and decrypted on the other, at the same time. Raises UserError
    where the lab can't be built.
    """
    plan = LabPlan(_TOPOLOGY, image, {_TOPOLOGY.gateways[0]: runtime})
    async with Lab(plan) as lab:
        node = lab.nodes[_TOPOLOGY.gateways[0]]
        in_kernel = _algorithms(suite for suite in suites if suite.in_kernel)
        in_programs = _algorithms(suite for suite in suites if not suite.in_kernel)
        costs = {
            True: await time_in_kernel(node, in_kernel),
            False: await time_with_openssl(node, in_programs),
        }
        names = {True: await _kernel(node), False: await openssl.version(node) or "OpenSSL"}
    return {suite: _alone(suite, names[suite.in_kernel], costs[suite.in_kernel]) for suite in suites}


def parts(suite: Suite) -> list[Algorithm]:
    """The algorithms that a suite runs over each packet. Raises ValueError for one that can't be timed."""
    found = (cipher(suite.encryption), integrity(suite.integrity))
    return [algorithm for algorithm in found if algorithm is not None]


def _algorithms(suites: Iterable[Suite]) -> list[Algorithm]:
    """All that can be timed, each once."""
    found: dict[Algorithm, None] = {}
    for suite in suites:
        with contextlib.suppress(ValueError):
            found |= dict.fromkeys(parts(suite))
    return list(found)


def _alone(suite: Suite, implementation: str, costs: Mapping[Algorithm, Cost | str]) -> Alone:
    try:
        algorithms = parts(suite)
    except ValueError as error:
        return Alone(implementation, None, str(error))
    total = NOTHING
    for algorithm in algorithms:
        cost = costs[algorithm]
        if isinstance(cost, str):
            return Alone(implementation, None, f"{algorithm.title}: {cost}")
        total += cost
    return Alone(implementation, total)


async def _kernel(node: Node) -> str:
    return f"Linux {(await node.run('uname', '-r')).text.strip()}"
