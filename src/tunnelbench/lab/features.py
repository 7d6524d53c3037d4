"""What a kernel can do, found out by doing it on a node that is thrown away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tunnelbench.lab.node import Node


@dataclass(frozen=True, order=True)
class Feature:
    """An ability of a kernel, and the program that succeeds where there is it."""

    name: str
    """In words, such as `IPIP links`."""
    check: tuple[str, ...]
    """A program of the image with its arguments; may leave traces on the node."""


def link_kind(title: str, kind: str, *arguments: str) -> Feature:
    """The ability to make links of a kind (ip-link(8))."""
    return Feature(f"{title} links", ("ip", "link", "add", f"try-{kind}"[:15], "type", kind, *arguments))


TUN = Feature("TUN devices", ("ip", "tuntap", "add", "dev", "try-tun", "mode", "tun"))
"""Virtual network interfaces whose packets a program reads and writes."""


async def missing_features(node: Node, features: Iterable[Feature]) -> tuple[Feature, ...]:
    """Those of `features` that the node's kernel lacks, in order of their names."""
    missing: list[Feature] = []
    for feature in sorted(features):
        if (await node.run(*feature.check, check=False)).status != 0:
            missing.append(feature)
    return tuple(missing)


async def missing_programs(node: Node, programs: Iterable[str]) -> tuple[str, ...]:
    """Those of `programs` that the node's image lacks, in order of their names."""
    names = sorted(programs)
    if not names:
        return ()
    found = await node.run("which", *names, check=False)
    present = {line.rsplit("/", 1)[-1] for line in found.text.splitlines()}
    return tuple(name for name in names if name not in present)
