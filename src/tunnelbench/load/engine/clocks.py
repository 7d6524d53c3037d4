"""How far apart the clocks of two nodes are."""

from __future__ import annotations

from dataclasses import dataclass

from tunnelbench.load.base import TrafficNode

_LOOKS = 5


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """What to add to one node's clock to get the other's, and how sure that is."""

    offset: int
    """ns; 0 where the two clocks can't be told apart, as of two nodes on one kernel."""
    uncertainty: int
    """The true offset is at most this far away, ns; 0 where the clocks are taken for one."""

    @staticmethod
    def from_look(before: int, other: int, after: int) -> ClockOffset:
        """From a look at the other's clock between two looks at the one's (as NTP, RFC 5905 section 8)."""
        uncertainty = (after - before + 1) // 2
        offset = other - before - (after - before) // 2
        return ClockOffset(0, 0) if abs(offset) <= uncertainty else ClockOffset(offset, uncertainty)


async def clock_offset(one: TrafficNode, other: TrafficNode) -> ClockOffset:
    """The offset of the other node's clock, from the tightest of a few looks."""
    looks: list[tuple[int, int, int]] = []
    for _ in range(_LOOKS):
        before = await one.clock()
        others = await other.clock()
        looks.append((before, others, await one.clock()))
    return ClockOffset.from_look(*min(looks, key=lambda look: look[2] - look[0]))
