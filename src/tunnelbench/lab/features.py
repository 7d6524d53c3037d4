"""What a gateway must have, and whether a node has it: found out by doing it on a throw-away node."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from tunnelbench.lab.node import Node

_AT_ONCE = 8
# A check may have a kernel load a chain of modules, on a busy machine.
_CHECK_SECONDS = 60.0


@dataclass(frozen=True, order=True)
class Feature:
    """An ability of a kernel, and the program that succeeds where there is it."""

    name: str
    """In words, such as `IPIP links`."""
    check: tuple[str, ...]
    """A program of the image with its arguments; may leave traces on the node."""
    user_space: bool = False
    """Whether it hands every packet to a program, which costs a system call or more for each."""
    from_source: bool = False
    """Whether images with a kernel from source have it, and those with Debian's may not."""


def link_kind(title: str, kind: str, *arguments: str, from_source: bool = False) -> Feature:
    """The ability to make links of a kind (ip-link(8))."""
    check = ("ip", "link", "add", f"try-{kind}"[:15], "type", kind, *arguments)
    return Feature(f"{title} links", check, from_source=from_source)


TUN = Feature(
    "TUN devices (/dev/net/tun, and the right to open it)",
    ("ip", "tuntap", "add", "dev", "try-tun", "mode", "tun"),
    user_space=True,
)
"""Virtual network interfaces whose packets a program reads and writes."""

NETEM = Feature(
    "the network emulator netem", ("tc", "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
)
"""Links with delay and loss (tc-netem(8))."""


@dataclass(frozen=True)
class Needs:
    """What a gateway must have; the lab looks for it before a tunnel is brought up."""

    programs: frozenset[str] = frozenset()
    """Programs on the image, such as `openvpn`."""
    features: frozenset[Feature] = frozenset()
    """What the gateway's kernel must be able to do."""

    @property
    def user_space(self) -> bool:
        """Whether every packet goes through a program on its way."""
        return any(feature.user_space for feature in self.features)


async def missing_features(node: Node, features: Iterable[Feature]) -> tuple[Feature, ...]:
    """Those of `features` that the node's kernel lacks, in order of their names; tries many at once."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def lacks(feature: Feature) -> bool:
        async with room:
            return (await node.run(*feature.check, timeout=_CHECK_SECONDS, check=False)).status != 0

    wanted = sorted(features)
    lacking = await asyncio.gather(*(lacks(feature) for feature in wanted))
    return tuple(feature for feature, lacks_it in zip(wanted, lacking, strict=True) if lacks_it)


async def missing_programs(node: Node, programs: Iterable[str]) -> tuple[str, ...]:
    """Those of `programs` that the node's image lacks, in order of their names."""
    names = sorted(programs)
    if not names:
        return ()
    found = await node.run("which", *names, check=False)
    present = {line.rsplit("/", 1)[-1] for line in found.text.splitlines()}
    return tuple(name for name in names if name not in present)
