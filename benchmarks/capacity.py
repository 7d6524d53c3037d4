"""Traffic that searches for capacity take until their answer, in systems whose limit is known.

python benchmarks/capacity.py [REPEATS]

Simulated: a search knows of a system only what its trials lose, so nothing has to be sent to compare them.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from dataclasses import dataclass
from random import Random

from common import spread, table

from tunnelbench.load.search.capacity import find_capacity
from tunnelbench.study.model import CapacityRule, CapacitySearch

LIMITS = (20e6, 100e6, 400e6, 900e6)
HIGHEST = 1e9
SEARCHES: dict[str, tuple[CapacityRule, str]] = {
    "RFC 9971, trials of 1 s": ("conditional", "1 s"),
    "KTH rule, trials of 1 s": ("kth", "1 s"),
    "KTH rule, trials of 10 s": ("kth", "10 s"),
    "RFC 2544, trials of 60 s": ("rfc2544", "60 s"),
}


@dataclass
class System:
    """Carries up to a limit that wavers by 0.5 % from trial to trial; one trial in ten loses 2 % more."""

    limit: float
    random: Random
    seconds: float = 0.0

    async def __call__(self, rate: float, seconds: float) -> float:
        self.seconds += seconds
        carried = self.limit * self.random.gauss(1, 0.005)
        spoilt = 0.02 if self.random.random() < 0.1 else 0.0
        return min(1.0, max(0.0, 1 - carried / rate) + spoilt)


def main(repeats: int) -> None:
    """Prints seconds of traffic and the error of the answer."""
    rows: list[list[str]] = []
    for limit in LIMITS:
        for name, (rule, trial) in SEARCHES.items():
            settings = CapacitySearch.model_validate({"rule": rule, "trial": trial})
            systems = [System(limit, Random(f"{repeat} {limit} {name}")) for repeat in range(repeats)]
            found = [asyncio.run(find_capacity(system, settings, HIGHEST)).rate for system in systems]
            errors = [100 * (rate / limit - 1) for rate in found if rate is not None]
            within = sum(abs(error) <= 2 for error in errors) / repeats
            rows.append(
                [
                    f"{limit / 1e6:g}",
                    name,
                    f"{statistics.median(system.seconds for system in systems):.0f}",
                    spread(errors),
                    f"{within:.0%}",
                ]
            )
    headings = ("limit, Mbit/s", "search", "traffic, s", "error, %", "within 2 %")
    print(table(headings, rows))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
