"""Operating systems by side: which images gateways, or hosts, run on either side of a network."""

from __future__ import annotations

from dataclasses import dataclass

SIGN = "+"
"""Between two images in a level; no image has it in its name."""


@dataclass(frozen=True)
class Systems:
    """Names of images: that of the first side (gw1; host1 or the clients) and that of the second (gw2; host2
    or the server)."""

    first: str
    second: str

    @property
    def images(self) -> tuple[str, ...]:
        """Each once."""
        return tuple(dict.fromkeys((self.first, self.second)))

    @property
    def differ(self) -> bool:
        """Whether each side has its own."""
        return self.first != self.second

    def __str__(self) -> str:
        """As a level has them: `bookworm` for both sides, `bookworm+trixie` where they differ."""
        return SIGN.join(self.images)


def read_systems(level: str) -> Systems:
    """From a level as a treatment has it."""
    first, _, second = level.partition(SIGN)
    return Systems(first, second or first)


def too_many_gateways(gateway_os: str, topology: str) -> str | None:
    """Why a topology can't have gateways of these systems; None where it can."""
    if topology != "remote-access" or not read_systems(gateway_os).differ:
        return None
    return f"the topology remote-access has one gateway: name one image for it, not {gateway_os}"
