"""What an algorithm costs: so much for each packet, and so much for each byte in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

REFERENCE_BYTES = 1400
"""The payload for which rates are given."""


@dataclass(frozen=True)
class Cost:
    """A line through times of several sizes."""

    ns_per_packet: float
    ns_per_byte: float

    def ns(self, n_bytes: int) -> float:
        """Time for a packet of this many bytes."""
        return self.ns_per_packet + self.ns_per_byte * n_bytes

    def mbit_per_second(self, n_bytes: int = REFERENCE_BYTES) -> float:
        """What one processor does that has nothing else to do; infinite for what costs nothing."""
        time = self.ns(n_bytes)
        return 8e3 * n_bytes / time if time else float("inf")

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.ns_per_packet + other.ns_per_packet, self.ns_per_byte + other.ns_per_byte)

    def without(self, calls: Cost) -> Cost:
        """Without what it takes to ask for it; noise may not make time negative."""
        return Cost(
            max(0.0, self.ns_per_packet - calls.ns_per_packet),
            max(0.0, self.ns_per_byte - calls.ns_per_byte),
        )


NOTHING = Cost(0.0, 0.0)


def fit(ns_by_size: Mapping[int, float]) -> Cost:
    """The line with the least relative errors: a microsecond counts for more where all takes ten."""
    if len(ns_by_size) < 2:
        raise ValueError("a line needs times of two sizes")
    weights = {size: 1 / time**2 for size, time in ns_by_size.items()}
    total = sum(weights.values())
    mean_size = sum(weights[size] * size for size in ns_by_size) / total
    mean_time = sum(weights[size] * time for size, time in ns_by_size.items()) / total
    spread = sum(weights[size] * (size - mean_size) ** 2 for size in ns_by_size)
    together = sum(
        weights[size] * (size - mean_size) * (time - mean_time) for size, time in ns_by_size.items()
    )
    slope = together / spread
    return Cost(mean_time - slope * mean_size, slope)
