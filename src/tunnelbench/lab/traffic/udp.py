"""Sending and receiving UDP datagrams."""

from __future__ import annotations

from typing import Literal

from tunnelbench.lab.traffic.common import Content, Histogram, Message, Schedule, SocketOptions, Tagged, Tally
from tunnelbench.lab.traffic.flow import FlowReport
from tunnelbench.lab.traffic.process import Departures, Sizes

Timestamps = Literal["kernel", "user"]

Codec = Literal["g711", "g711_plc", "g729a", "g723_1"]

DEFAULT_LINGER = 500_000_000
"""How long a receiver waits for stragglers, ns."""


class PerPacket(Tagged, frozen=True, tag="per_packet"):
    """Each datagram in a system call of its own."""


class Batched(Tagged, frozen=True, tag="batched"):
    """Several datagrams in one system call, but each a packet of its own all the way."""

    datagrams: int
    """The most in one call, 1 to 1024."""


class Segmented(Tagged, frozen=True, tag="segmented"):
    """Several datagrams of one size as one packet (UDP_SEGMENT) that is cut as late as possible."""

    datagrams: int
    """The most in one packet, 1 to 64."""


SendMode = PerPacket | Batched | Segmented


class UdpSend(Tagged, frozen=True, kw_only=True, tag="udp_send"):
    """Sends datagrams to one destination, each at its intended time."""

    destination: str
    """IP address and port, such as `10.0.0.1:5201` or `[fd00::1]:5201`."""
    session: int
    """Tag of the datagrams, 16 bits; the receiver ignores others."""
    schedule: Schedule
    departures: Departures
    """When each datagram is due."""
    sizes: Sizes
    """UDP payload of each datagram, 12 to 65507."""
    seed: int = 0
    """The same seed sends the same datagrams at the same intended times."""
    mode: SendMode
    """None leaves before it is due."""
    content: Content
    socket: SocketOptions = SocketOptions()
    log: str | None = None
    """A file on the node of the job, with every datagram that departs."""


class UdpReceive(Tagged, frozen=True, kw_only=True, tag="udp_receive"):
    """Receives the datagrams of one session from the first source that sends any."""

    bind: str
    """Where to listen; port 0 lets the system choose."""
    session: int
    schedule: Schedule
    linger: int = DEFAULT_LINGER
    """Longest wait for stragglers after the schedule, ns; a silence longer than any before ends it."""
    step: int = 100_000_000
    """Length of a step of the series, ns."""
    timestamps: Timestamps = "kernel"
    """`kernel` is before the decryption on a node that decrypts the packets itself."""
    peer: str | None = None
    """The only IP address whose datagrams count."""
    voice: Codec | None = None
    """The codec of the voice call that the flow stands for."""
    log: str | None = None
    """A file on the node for a record of every datagram of the flow that arrives."""
    socket: SocketOptions = SocketOptions()
    """Its buffer has 4 MiB where there is none."""


class UdpSent(Tagged, frozen=True, kw_only=True, tag="udp_send"):
    """What a UDP sender sent."""

    mode: SendMode
    """The one that was really used, and the most that were put together."""
    asked_rate: float | None
    """Payload bits per second that were due in the measured window; None where departures were `max`."""
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
    """Departure minus intended time; None where departures were `max`."""
    processor: int
    """Of the sending thread in the measured window, ns."""
    clock_step: int
    """By how much the node's wall clock was stepped during the job, ns."""


class VoiceQuality(Message, frozen=True):
    """How good a voice call would be, by the E-model (ITU-T G.107)."""

    r_factor: float
    """0 to 100."""
    mos: float
    """Mean opinion score, 1 to 4.5."""


class UdpReceived(Tagged, frozen=True, kw_only=True, tag="udp_receive"):
    """What a UDP receiver received."""

    timestamps: Timestamps
    """Those that were really used."""
    socket_buffer: int
    """Bytes that the system granted."""
    flow: FlowReport
    foreign: int
    """Of other sessions or sources, or without a valid header."""
    buffer_drops: int
    """Dropped in the measured window by a full receive buffer: the receiver's fault, not the network's."""
    receive_calls: int
    """System calls that received something, in all phases."""
    coalesced: int
    """Datagrams, in all phases, that the kernel handed over together as one large packet."""
    processor: int
    """Processor time of the receiving thread in the measured window, ns."""
    voice: VoiceQuality | None
    """None where the job names no codec, or nothing arrived."""
    log_dropped: int | None
    """Records that the packet log lacks, because it could not be written fast enough; None without a log."""
    clock_step: int
    """By how much the node's wall clock was stepped during the job, ns."""
