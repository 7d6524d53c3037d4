"""How a stream of packets is shaped: when each departs, and how long it is."""

from __future__ import annotations

from dataclasses import dataclass

from tunnelbench.lab.traffic import (
    BitsPerSecond,
    Bursts,
    Codec,
    Constant,
    Departures,
    MaximumRate,
    PacketsPerSecond,
    Sizes,
)
from tunnelbench.load.base import Traffic
from tunnelbench.load.profiles import profile
from tunnelbench.study import quantity


@dataclass(frozen=True)
class Shape:
    """What the engine's jobs need to know of a stream."""

    departures: Departures
    sizes: Sizes
    codec: Codec | None = None
    """Of the voice call that it stands for, if it does."""

    @classmethod
    def of(cls, traffic: Traffic) -> Shape:
        """The shape that some traffic asks for."""
        if traffic.profile == "constant":
            return cls(_departures(traffic.rate), Constant(traffic.payload))
        named = profile(traffic.profile)
        return cls(named.departures or _departures(traffic.rate), named.sizes, named.codec)


def _departures(rate: quantity.Rate | None) -> Departures:
    match rate:
        case quantity.Bursts(packets, interval_ns):
            return Bursts(packets, interval_ns)
        case quantity.SendingRate(int(amount), "bit/s"):
            return BitsPerSecond(amount)
        case quantity.SendingRate(int(amount)):
            return PacketsPerSecond(amount)
        case _:
            return MaximumRate()
