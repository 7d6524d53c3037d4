"""TCP streams."""

from __future__ import annotations

from typing import Literal

from tunnelbench.lab.traffic.common import Content, Message, Schedule, Series, SocketOptions, Tagged

Side = Literal["send", "receive", "both"]
"""What a job does with its streams, whoever connects."""

DEFAULT_CONNECT_TIMEOUT = 3_000_000_000
"""How long all TCP streams together may take to connect, ns."""


class TcpOptions(Message, frozen=True, kw_only=True):
    """How TCP streams are driven; each end has its own."""

    write_bytes: int
    """Bytes of each write; of no use to a receiver."""
    streams: int = 1
    """Connections side by side; both ends must agree."""
    content: Content
    no_delay: bool = False
    congestion_control: str | None = None
    mss: int | None = None
    """Bytes."""
    socket: SocketOptions = SocketOptions()
    """Without a buffer the system tunes it itself."""


class TcpConnect(Tagged, frozen=True, kw_only=True, tag="tcp_connect"):
    """Opens TCP connections to a `TcpListen` job."""

    destination: str
    """The listener, or a port that is forwarded to it."""
    session: int
    """64 random bits that the listener must share."""
    schedule: Schedule
    side: Side
    options: TcpOptions
    connect_timeout: int = DEFAULT_CONNECT_TIMEOUT
    """For all streams together, ns."""


class TcpListen(Tagged, frozen=True, kw_only=True, tag="tcp_listen"):
    """Accepts the TCP connections of a `TcpConnect` job."""

    bind: str
    """Where to listen; port 0 lets the system choose."""
    session: int
    schedule: Schedule
    side: Side
    options: TcpOptions


class TcpInformation(Message, frozen=True):
    """What Linux says about a TCP connection (TCP_INFO)."""

    round_trip: int
    """Smoothed, ns."""
    round_trip_deviation: int
    """ns."""
    retransmits: int
    """Segments."""
    congestion_window: int
    """Segments."""
    segment_bytes: int


class TcpSent(Message, frozen=True):
    """What a TCP sender handed to the system."""

    measured_bytes: int
    """Written in the measured window, all streams."""
    total_bytes: int
    streams: list[TcpInformation]
    """At the end of the schedule."""


class TcpReceived(Message, frozen=True):
    """What a TCP receiver read."""

    measured_bytes: int
    """Read in the measured window, all streams."""
    total_bytes: int
    streams: list[int]
    """`measured_bytes` of each stream."""
    series: Series
    longest_gap: int
    """The longest time in the measured window without an arrival on one stream, ns."""


class TcpFlow(Message, frozen=True):
    """One or both, as the side of the job says."""

    sent: TcpSent | None = None
    received: TcpReceived | None = None


class _TcpCarried(Tagged, frozen=True):
    foreign: int
    """Connections that were not of this job."""
    clock_step: int
    """By how much the node's wall clock was stepped during the job, ns."""
    flow: TcpFlow


class TcpConnected(_TcpCarried, frozen=True, tag="tcp_connect"):
    """What the connecting end of a TCP job did."""


class TcpListened(_TcpCarried, frozen=True, tag="tcp_listen"):
    """What the listening end of a TCP job did."""
