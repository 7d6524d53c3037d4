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


class SocketOptions(Message, frozen=True, kw_only=True):
    """What a job asks of its socket; the system's own choice wherever there is none."""

    source: str | None = None
    """The local IP address to send from; not for a listener."""
    port: int | None = None
    """The local port to send from; not for a listener."""
    dscp: int | None = None
    """Differentiated services code point (RFC 2474), 0 to 63."""
    ttl: int | None = None
    """Time to live, or hop limit of IPv6, 1 to 255."""
    dont_fragment: bool | None = None
    """True refuses what exceeds the known path MTU; false lets every packet be fragmented."""
    buffer: int | None = None
    """SO_SNDBUF and SO_RCVBUF, bytes."""


class Zeros(Tagged, frozen=True, tag="zeros"):
    """Zero bytes: as compressible as can be."""


class Random(Tagged, frozen=True, tag="random"):
    """Incompressible bytes, the same in every run."""


class Pattern(Tagged, frozen=True, tag="pattern"):
    """These bytes, repeated."""

    data: bytes


class File(Tagged, frozen=True, tag="file"):
    """The bytes of a file, one piece after the other and over and over."""

    path: str
    """On the node of the job; 1 byte to 16 MiB."""


Content = Zeros | Random | Pattern | File


class Histogram(Message, frozen=True, kw_only=True):
    """A distribution."""

    unit: Literal["ns", "packets"]
    count: int
    negative: int
    """Values below 0, recorded as 0: a sign of clocks that are apart."""
    min: int
    max: int
    mean: float
    deviation: float
    """Standard deviation."""
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
    """Bytes of streams in equal steps from the start of the schedule to its end."""

    step: int
    """ns."""
    bytes: list[int]
