"""The jobs of the traffic engine and their outcomes, as they are on the wire.

They mirror `crates/traffic/src/job.rs` and `outcome.rs`, field by field and in their order; golden files that
both sides read keep them alike. Durations are integers in nanoseconds, rates and byte counts are of payload.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Protocol = Literal["udp", "tcp"]
Side = Literal["send", "receive"]
Timestamps = Literal["kernel", "user"]

DEFAULT_LINGER = 500_000_000
"""How long a receiver waits for stragglers, ns."""
DEFAULT_CONNECT_TIMEOUT = 3_000_000_000
"""How long all TCP streams together may take to connect, ns."""


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    pass


class _Tagged(_Message, frozen=True, tag_field="kind"):
    pass


class Schedule(_Message, frozen=True):
    """The time plan of one trial; both ends get the same, each in its own clock."""

    start_at: int
    """When sending starts: ns of the node's CLOCK_REALTIME."""
    warm_up: int
    """Sending before the measured window, ns."""
    measure: int
    """The measured window, ns."""
    cool_down: int
    """Sending after the measured window, ns."""


class BitsPerSecond(_Tagged, frozen=True, tag="bits_per_second"):
    """A rate in payload bits per second."""

    value: int


class PacketsPerSecond(_Tagged, frozen=True, tag="packets_per_second"):
    """A rate in datagrams per second."""

    value: int


class MaximumRate(_Tagged, frozen=True, tag="max"):
    """As fast as the machine can."""


Rate = BitsPerSecond | PacketsPerSecond | MaximumRate


class Zeros(_Tagged, frozen=True, tag="zeros"):
    """Zero bytes: as compressible as can be."""


class Random(_Tagged, frozen=True, tag="random"):
    """Incompressible bytes, the same in every run."""


class Pattern(_Tagged, frozen=True, tag="pattern"):
    """These bytes, repeated."""

    data: bytes


Content = Zeros | Random | Pattern


class UdpSend(_Tagged, frozen=True, kw_only=True, tag="udp_send"):
    """Sends datagrams of one size to one destination, each at its intended time."""

    destination: str
    """IP address and port, such as `10.0.0.1:5201` or `[fd00::1]:5201`."""
    source_port: int | None = None
    session: int
    """Tag of the datagrams, 16 bits; the receiver ignores others."""
    schedule: Schedule
    payload_bytes: int
    """UDP payload of each datagram, 12 to 65507."""
    rate: Rate
    batch: int
    """The most datagrams that one system call may carry, 1 to 1024."""
    content: Content
    socket_buffer: int | None = None
    """SO_SNDBUF, bytes."""


class UdpReceive(_Tagged, frozen=True, kw_only=True, tag="udp_receive"):
    """Receives the datagrams of one session from the first source that sends any."""

    bind: str
    """Where to listen; port 0 lets the system choose."""
    session: int
    schedule: Schedule
    linger: int = DEFAULT_LINGER
    """How long to wait for stragglers after the schedule, ns; ends early after a quarter of it in silence."""
    timestamps: Timestamps = "kernel"
    """`kernel` is before the decryption on a node that decrypts the packets itself."""
    socket_buffer: int | None = None
    """SO_RCVBUF, bytes; 4 MiB where there is none."""


class TcpOptions(_Message, frozen=True, kw_only=True):
    """How TCP streams are driven; each end has its own."""

    write_bytes: int
    """Bytes of each write; of no use to a receiver."""
    streams: int = 1
    """Connections side by side; both ends must agree."""
    content: Content
    no_delay: bool = False
    congestion_control: str | None = None
    socket_buffer: int | None = None
    """SO_SNDBUF and SO_RCVBUF, bytes; tuned by the system where there is none."""
    mss: int | None = None
    """Bytes."""


class TcpConnect(_Tagged, frozen=True, kw_only=True, tag="tcp_connect"):
    """Opens TCP connections to a `TcpListen` job."""

    destination: str
    """The listener, or a port that is forwarded to it."""
    session: int
    schedule: Schedule
    side: Side
    options: TcpOptions
    connect_timeout: int = DEFAULT_CONNECT_TIMEOUT
    """For all streams together, ns."""


class TcpListen(_Tagged, frozen=True, kw_only=True, tag="tcp_listen"):
    """Accepts the TCP connections of a `TcpConnect` job."""

    bind: str
    """Where to listen; port 0 lets the system choose."""
    session: int
    schedule: Schedule
    side: Side
    options: TcpOptions


class EchoServe(_Tagged, frozen=True, kw_only=True, tag="echo_serve"):
    """Sends back what the first source sends, until the deadline or until stopped."""

    bind: str
    protocol: Protocol
    deadline: int
    """When to end, ns after the start of the job."""


class EchoProbe(_Tagged, frozen=True, kw_only=True, tag="echo_probe"):
    """Sends probes to an `EchoServe` job and times the replies (RFC 2681)."""

    destination: str
    protocol: Protocol
    count: int
    """The most probes to send."""
    interval: int
    """Between departures, ns; 0 sends the next when the last is answered or given up."""
    payload_bytes: int
    """Of each probe, 12 to 65507."""
    marker: bytes | None = None
    """Repeated after the 12 bytes of the header."""
    timeout: int
    """How long a reply, and over TCP the connection, may take, ns."""
    until_first_reply: bool = False
    """End at the first reply; until then no failure is final."""
    deadline: int
    """When to end at the latest, ns after the start of the job."""


Job = UdpSend | UdpReceive | TcpConnect | TcpListen | EchoServe | EchoProbe


class Histogram(_Message, frozen=True, kw_only=True):
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


class Tally(_Message, frozen=True):
    """Datagrams and their payload bytes."""

    packets: int
    bytes: int


class Series(_Message, frozen=True):
    """Arrivals in equal steps from the start of the schedule to its end."""

    step: int
    """ns."""
    bytes: list[int]
    packets: list[int] | None
    """None for TCP."""


class UdpSent(_Tagged, frozen=True, kw_only=True, tag="udp_send"):
    """What a UDP sender sent."""

    asked_rate: float | None
    """Payload bits per second; None where the rate was `max`."""
    achieved_rate: float
    """Payload bits per second that left in the measured window."""
    measured: Tally
    """Sent with an intended time in the measured window."""
    total: Tally
    late: int
    """Of `measured`, departed more than 1 ms after their intended time."""
    skipped: int
    """Due in the measured window and never sent, because the sender was more than 10 ms behind."""
    unsent: int
    """Due in the measured window and refused by the system."""
    send_errors: int
    """System calls that failed, in all phases."""
    departure_error: Histogram | None
    """Departure minus intended time; None where the rate was `max`."""
    clock_step: int
    """By how much the node's wall clock was stepped during the job, ns."""


class UdpReceived(_Tagged, frozen=True, kw_only=True, tag="udp_receive"):
    """What a UDP receiver received; loss is `1 - received.measured.packets / sent.measured.packets`."""

    timestamps: Timestamps
    """Those that were really used."""
    socket_buffer: int
    """Bytes that the system granted."""
    measured: Tally
    """Unique datagrams whose intended time lies in the measured window, whenever they arrived."""
    duplicates: int
    """Further copies of those (RFC 5560)."""
    reordered: int
    """Of `measured`, type-P-reordered (RFC 4737)."""
    beyond_window: int
    """So far behind the newest that duplicates can't be told; in no other count but `total`."""
    jitter_last: float | None
    """Inter-arrival jitter (RFC 3550) at the end, ns."""
    jitter_mean: float | None
    """Its mean over all arrivals, ns."""
    delay: Histogram | None
    """Arrival minus intended departure (RFC 7679); None where nothing arrived."""
    arrived: Tally
    """Unique datagrams by arrival in the measured window."""
    series: Series
    longest_gap: int
    """The longest time in the measured window without an arrival, ns."""
    total: Tally
    """Of the session in all phases, duplicates included."""
    foreign: int
    """Of other sessions or sources, or without a valid header."""
    buffer_drops: int
    """Dropped in the measured window by a full receive buffer: the receiver's fault, not the network's."""
    clock_step: int
    """By how much the node's wall clock was stepped during the job, ns."""


class TcpInformation(_Message, frozen=True):
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


class TcpSent(_Tagged, frozen=True, tag="send"):
    """What a TCP sender handed to the system."""

    measured_bytes: int
    """Written in the measured window, all streams."""
    total_bytes: int
    streams: list[TcpInformation]
    """At the end of the schedule."""


class TcpReceived(_Tagged, frozen=True, tag="receive"):
    """What a TCP receiver read."""

    measured_bytes: int
    """Read in the measured window, all streams."""
    total_bytes: int
    streams: list[int]
    """`measured_bytes` of each stream."""
    series: Series
    longest_gap: int
    """The longest time in the measured window without an arrival on one stream, ns."""


class _TcpCarried(_Tagged, frozen=True):
    foreign: int
    """Connections that were not of this job."""
    clock_step: int
    """By how much the node's wall clock was stepped during the job, ns."""
    flow: TcpSent | TcpReceived


class TcpConnected(_TcpCarried, frozen=True, tag="tcp_connect"):
    """What the connecting end of a TCP job did."""


class TcpListened(_TcpCarried, frozen=True, tag="tcp_listen"):
    """What the listening end of a TCP job did."""


class Echoed(_Tagged, frozen=True, tag="echo_serve"):
    """What an echo server sent back."""

    echoed: Tally
    foreign: int
    """Datagrams or connections from another source."""


class Probed(_Tagged, frozen=True, kw_only=True, tag="echo_probe"):
    """What a prober saw."""

    sent: int
    replies: int
    failures: int
    """Sends or connection attempts that failed."""
    round_trip: Histogram | None
    """None without replies."""
    first_reply_after: int | None
    """From the start of the job, ns; None without replies."""


Outcome = UdpSent | UdpReceived | TcpConnected | TcpListened | Echoed | Probed
