"""How one sees that IPsec's keys are new: no pair of associations is left that was there before."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tunnelbench.lab.program import Program
from tunnelbench.tunnels.daemons import until

Pairs = frozenset[frozenset[object]]
"""Of security parameter indices (RFC 4301), one of each direction, as a daemon writes them."""


async def all_replaced(
    old: Pairs, current: Callable[[], Awaitable[Pairs]], daemon: Program, seconds: float
) -> None:
    """Waits until as many pairs as before are in use, and none of the old ones.

    `current` says what both ends have in use, and no pairs where they differ. Raises NodeError with the
    daemon's last lines after so many seconds.
    """

    async def are_new() -> bool:
        new = await current()
        return len(new) == len(old) and not new & old

    await until(are_new, seconds, f"{daemon.arguments[0]} had no new keys", daemon)
