"""Systems whose limit is known, to search in: each is a measurement that counts its uses."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random


@dataclass
class HardLimit:
    """Carries up to a limit, and loses what is above."""

    limit: float
    """Bits per second."""
    trials: int = 0
    elapsed: float = 0.0
    """Seconds of all trials."""

    async def __call__(self, rate: float, seconds: float) -> float:
        self.trials += 1
        self.elapsed += seconds
        return self.loss(rate, seconds)

    def loss(self, rate: float, seconds: float) -> float:
        return max(0.0, 1 - self.limit / rate)


@dataclass
class NoisyLimit(HardLimit):
    """A hard limit where now and then a trial at any rate loses some."""

    chance: float = 0.1
    """How often a trial is spoilt (ratio)."""
    spoilt: float = 0.005
    """What it then loses (ratio)."""
    random: Random = field(default_factory=lambda: Random(1))

    def loss(self, rate: float, seconds: float) -> float:
        noise = self.spoilt if self.random.random() < self.chance else 0.0
        return min(1.0, HardLimit.loss(self, rate, seconds) + noise)


@dataclass
class DriftingLimit(HardLimit):
    """A limit that falls slowly while it is measured, as that of hardware that gets warm."""

    per_second: float = 0.0
    """How much of the limit goes in each second (ratio)."""

    @property
    def limit_now(self) -> float:
        return self.limit * (1 - self.per_second) ** self.elapsed

    def loss(self, rate: float, seconds: float) -> float:
        return max(0.0, 1 - self.limit_now / rate)


@dataclass
class Bufferbloat(HardLimit):
    """A limit behind a long queue, empty at first: only what does not fit into it is lost."""

    queue_bits: float = 0.0

    def loss(self, rate: float, seconds: float) -> float:
        surplus = (rate - self.limit) * seconds - self.queue_bits
        return max(0.0, surplus / (rate * seconds))
