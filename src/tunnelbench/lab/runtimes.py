"""Runtime `auto`: where a tunnel's gateways run, decided by what this machine and the image can do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Hashable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar

from tunnelbench.errors import UserError
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.extras import extra_with
from tunnelbench.lab.features import Feature, Needs, missing_features, missing_programs
from tunnelbench.lab.image import Image
from tunnelbench.lab.kernel import start_kernel_node
from tunnelbench.lab.lab import Runtime, own_identities, stream_pair
from tunnelbench.lab.namespace import NamespaceNode, start_namespace_node
from tunnelbench.lab.node import Node

Key = TypeVar("Key", bound=Hashable)

_MOST_NAMED = 3
_OTHER_IMAGE = "an image of another release may do"


@dataclass(frozen=True)
class Placement:
    """Where gateways run: None for nowhere; and why, in words."""

    runtime: Runtime | None
    reason: str


async def place(
    image: Image, wanted: Mapping[Key, Needs], forced: Runtime | None = None
) -> dict[Key, Placement]:
    """Decides for each of `wanted` where its gateways run.

    Namespaces where this machine's kernel has all that is needed, else kernels where the image's kernel has
    it, else nowhere. What hands every packet to a program is slow in a kernel node, where system calls cost
    about thirty times more; the reason says so. Asks one throw-away node of each kind
    at most. Raises UserError where this machine can't make nodes at all.
    """
    features = frozenset[Feature]().union(*(needs.features for needs in wanted.values()))
    programs = frozenset[str]().union(*(needs.programs for needs in wanted.values()))
    async with _namespace_node(image) as outer:
        absent = frozenset(await missing_programs(outer.node, programs))
        here = await _survey_here(outer.node, features)
    carried = {key: needs for key, needs in wanted.items() if not needs.programs & absent}
    in_doubt = {
        feature
        for needs in carried.values()
        if forced is Runtime.KERNEL or here.missing(needs)
        for feature in needs.features
    }
    there = await _survey_kernel(image, in_doubt) if in_doubt and forced is not Runtime.NAMESPACE else None
    return {
        key: _place_one(image, needs, forced, here, there or _untried(image))
        if key in carried
        else Placement(None, _without_programs(image, needs.programs & absent))
        for key, needs in wanted.items()
    }


async def programs_missing(image: Image, programs: Iterable[str]) -> tuple[str, ...]:
    """Those of `programs` that the image lacks, in order of their names; asks a throw-away node."""
    wanted = frozenset(programs)
    if not wanted:
        return ()
    async with _namespace_node(image) as outer:
        return await missing_programs(outer.node, wanted)


@dataclass(frozen=True)
class _Survey:
    """What one kernel lacks of all that was asked for; `failure` says why it could not even be asked."""

    kernel: str
    lacking: frozenset[Feature]
    failure: str | None = None

    def missing(self, needs: Needs) -> list[str]:
        """What it lacks of these needs, in words."""
        return sorted(feature.name for feature in needs.features & self.lacking)

    def complaint(self, needs: Needs) -> str:
        """Why it can't carry what has these needs."""
        return self.failure or f"{self.kernel} lacks {_listing(self.missing(needs))}"


def _place_one(
    image: Image, needs: Needs, forced: Runtime | None, here: _Survey, there: _Survey
) -> Placement:
    if forced is not None:
        survey = here if forced is Runtime.NAMESPACE else there
        if survey.missing(needs) or survey.failure:
            remedy = f"; {_remedy(image, needs, there)}" if forced is Runtime.KERNEL else ""
            return Placement(None, survey.complaint(needs) + remedy)
        return Placement(forced, f"asked for; {survey.kernel} has what it needs")
    if not here.missing(needs):
        return Placement(Runtime.NAMESPACE, f"{here.kernel} has what it needs")
    if there.missing(needs) or there.failure:
        return Placement(
            None, f"{here.complaint(needs)}, and {there.complaint(needs)}; {_remedy(image, needs, there)}"
        )
    has = "has them" if len(here.missing(needs)) > 1 or here.missing(needs)[0].endswith("s") else "has it"
    slowly = ", though it slows programs that handle packets down manifold" if needs.user_space else ""
    return Placement(Runtime.KERNEL, f"{here.complaint(needs)}; {there.kernel} {has}{slowly}")


def _without_programs(image: Image, absent: frozenset[str]) -> str:
    """Why the image won't do, and which command brings what it lacks."""
    lacks = f"the image {image.name} lacks {_listing(sorted(absent))}"
    brings = {extra_with(program, image.release) for program in absent}
    if len(brings) == 1 and (extra := brings.pop()):
        return f"{lacks}, which Debian has not got; this brings it: {image.command_with(extra)}"
    return f"{lacks}; {_OTHER_IMAGE}"


def _remedy(image: Image, needs: Needs, there: _Survey) -> str:
    lacking = needs.features & there.lacking
    if image.kernel_source is None and lacking and all(feature.from_source for feature in lacking):
        return f"an image with a kernel from source may do: {image.command_from_source}"
    return _OTHER_IMAGE


async def _survey_here(node: Node, features: Iterable[Feature]) -> _Survey:
    lacking = frozenset(await missing_features(node, features))
    return _Survey(f"this machine's kernel ({(await node.identify()).kernel})", lacking)


async def _survey_kernel(image: Image, features: Iterable[Feature]) -> _Survey:
    try:
        async with _kernel_node(image) as node:
            return _Survey(_untried(image).kernel, frozenset(await missing_features(node, features)))
    except (UserError, NodeError) as error:
        wanted = frozenset(features)
        return _Survey(_untried(image).kernel, wanted, f"the image's kernel could not be tried: {error}")


def _untried(image: Image) -> _Survey:
    return _Survey(f"the image's kernel ({image.kernel_version})", frozenset())


@asynccontextmanager
async def _namespace_node(image: Image, descriptors: Iterable[int] = ()) -> AsyncGenerator[NamespaceNode]:
    outer = await start_namespace_node(
        "probe", image.root, user_namespace=own_identities(), descriptors=tuple(descriptors)
    )
    try:
        yield outer
    finally:
        await outer.close()


@asynccontextmanager
async def _kernel_node(image: Image) -> AsyncGenerator[Node]:
    ours, theirs = stream_pair()
    with theirs:
        async with _namespace_node(image, [theirs.fileno()]) as hull:
            kernel = await start_kernel_node(
                "probe", image, hull, (ours, theirs), [], mtu=1500, processors=[], descriptors=[]
            )
            try:
                yield kernel.node
            finally:
                await kernel.close()


def _listing(names: list[str]) -> str:
    """`a, b and c`; only the first few of many."""
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} more"]
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
