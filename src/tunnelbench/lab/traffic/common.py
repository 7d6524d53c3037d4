"""What the jobs of all transports share."""

from __future__ import annotations

from typing import Literal

import msgspec


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class Tagged(Message, frozen=True, tag_field="kind"):
    pass


class Schedule(Message, frozen=True):
    """The time plan of one trial; both ends get the same, each in its own clock."""

    start_at: int
    """When sending starts: ns of the node's CLOCK_REALTIME."""
    warm_up: int
    """Sending before the measured window, ns."""
    measure: int
    """The measured window, ns."""
    cool_down: int
    """Sending after the measured window, ns."""


class Zeros(Tagged, frozen=True, tag="zeros"):
    """Zero bytes: as compressible as can be."""


class Random(Tagged, frozen=True, tag="random"):
    """Incompressible bytes, the same in every run."""


class Pattern(Tagged, frozen=True, tag="pattern"):
    """These bytes, repeated."""

    data: bytes


Content = Zeros | Random | Pattern


class Histogram(Message, frozen=True, kw_only=True):
    """A distribution of times in ns."""

    unit: Literal["ns"]
    count: int
    negative: int
    """Values below 0, recorded as 0: a sign of clocks that are apart."""
    min: int
    max: int
    mean: float
    p50: int
    p90: int
    p99: int
    p999: int
    encoded: bytes
    """The whole distribution in HdrHistogram's compressed V2 encoding."""


class Tally(Message, frozen=True):
    """Datagrams and their payload bytes."""

    packets: int
    bytes: int


class Series(Message, frozen=True):
    """Arrivals in equal steps from the start of the schedule to its end."""

    step: int
    """ns."""
    bytes: list[int]
    packets: list[int] | None
    """None for TCP."""
