"""TCP streams."""

from __future__ import annotations

from typing import Literal

from tunnelbench.lab.traffic.common import (
    Content,
    Histogram,
    Message,
    Schedule,
    Series,
    SocketOptions,
    Tagged,
    Tally,
)
from tunnelbench.lab.traffic.flow import FlowReport
from tunnelbench.lab.traffic.process import Departures, Sizes

Side = Literal["send", "receive", "both"]
"""What a job does with its streams, whoever connects."""

DEFAULT_CONNECT_TIMEOUT = 3_000_000_000
"""How long all TCP streams together may take to connect, ns."""


class Messages(Message, frozen=True, kw_only=True):
    """Messages that an application sends over one stream, each at its own time. Both ends say the same."""

    departures: Departures
    sizes: Sizes
    """Bytes of each, 12 to 65535."""
    seed: int


class TcpOptions(Message, frozen=True, kw_only=True):
    """How TCP streams are driven; each end has its own."""

    write_bytes: int
    """Bytes of each write; of no use to a receiver."""
    streams: int = 1
    """Connections side by side; both ends must agree."""
    rate: int | None = None
    """Payload bits per second of all streams together; as fast as TCP takes them where there is none."""
    messages: Messages | None = None
    """Instead of writes in a row: `write_bytes` and `rate` don't apply, and there is one stream."""
    content: Content
    no_delay: bool = False
    congestion_control: str | None = None
    mss: int | None = None
    """Bytes."""
    sample: int = 100_000_000
    """Time between two samples of a sender's TCP_INFO, ns; longer where that is too many to keep."""
    socket: SocketOptions = SocketOptions()
    """Without a buffer the system tunes it itself."""


class TcpConnect(Tagged, frozen=True, kw_only=True, tag="tcp_connect"):
    """Opens TCP connections to a `TcpListen` job."""

    destination: str
    """The listener, or a port that is forwarded to it."""
    proxy: str | None = None
    """A SOCKS 5 proxy that connects to the destination (RFC 1928)."""
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


class TcpInformation(Message, frozen=True, kw_only=True):
    """What Linux says about a TCP connection (TCP_INFO); None where it has no value."""

    round_trip: int
    """Smoothed (RFC 6298), ns."""
    round_trip_deviation: int
    """ns."""
    minimum_round_trip: int | None
    """Of the last minutes, ns."""
    congestion_window: int
    """Segments."""
    unacked: int
    """Segments sent and not yet acknowledged."""
    retransmits: int
    """Segments so far."""
    segments: int | None
    """Segments with payload sent so far, retransmissions included."""
    segment_bytes: int
    pacing_rate: int | None
    """Bits per second."""
    delivery_rate: int | None
    """Bits per second."""


Samples = list[int | None]
"""A value of TCP_INFO in equal steps; None where the sampler was held up, or Linux has no value."""


class TcpSamples(Message, frozen=True, kw_only=True):
    """`TcpInformation` of one stream from the start of the schedule to its end."""

    round_trip: Samples
    round_trip_deviation: Samples
    congestion_window: Samples
    unacked: Samples
    retransmits: Samples
    pacing_rate: Samples
    delivery_rate: Samples


class MessagesSent(Message, frozen=True, kw_only=True):
    """The messages that a sender handed to the system in whole."""

    measured: Tally
    """Due in the measured window."""
    total: Tally
    behind: int
    """How long the first that was left at the end had been due then, ns: above 0 TCP was too slow."""
    departure_error: Histogram | None


class TcpSentStream(Message, frozen=True, kw_only=True):
    """What one stream sent."""

    measured_bytes: int
    processor: int
    """Processor time of its thread in the measured window, ns."""
    end: TcpInformation
    """At the end of the schedule."""
    samples: TcpSamples


class TcpSent(Message, frozen=True, kw_only=True):
    """What a TCP sender handed to the system, and what the system told of it."""

    measured_bytes: int
    """Written in the measured window, all streams."""
    total_bytes: int
    congestion_control: str
    retransmits: int
    """Segments retransmitted in the measured window, all streams."""
    segments: int | None
    """Segments with payload sent in the measured window, retransmissions included, all streams."""
    minimum_round_trip: int | None
    """Of all streams and the last minutes, ns."""
    round_trip: Histogram | None
    """The sampled round trips of all streams in the measured window."""
    step: int
    """Time between two samples, ns."""
    streams: list[TcpSentStream]
    messages: MessagesSent | None = None
    """Of a job with messages."""


class TcpReceivedStream(Message, frozen=True, kw_only=True):
    """What one stream received."""

    measured_bytes: int
    processor: int
    """Processor time of its thread in the measured window, ns."""


class TcpReceived(Message, frozen=True, kw_only=True):
    """What a TCP receiver read."""

    measured_bytes: int
    """Read in the measured window, all streams."""
    total_bytes: int
    streams: list[TcpReceivedStream]
    series: Series
    longest_gap: int
    """The longest time in the measured window without an arrival on one stream, ns."""
    messages: FlowReport | None = None
    """The account of all messages of a job with messages; a message arrives with its last byte."""


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
