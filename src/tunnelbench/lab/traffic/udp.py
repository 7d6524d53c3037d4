"""Sending and receiving UDP datagrams."""

from __future__ import annotations

from typing import Literal

from tunnelbench.lab.traffic.common import Content, Histogram, Schedule, Series, SocketOptions, Tagged, Tally

Timestamps = Literal["kernel", "user"]

DEFAULT_LINGER = 500_000_000
"""How long a receiver waits for stragglers, ns."""


class BitsPerSecond(Tagged, frozen=True, tag="bits_per_second"):
    """A rate in payload bits per second."""

    value: int


class PacketsPerSecond(Tagged, frozen=True, tag="packets_per_second"):
    """A rate in datagrams per second."""

    value: int


class MaximumRate(Tagged, frozen=True, tag="max"):
    """As fast as the machine can."""


Rate = BitsPerSecond | PacketsPerSecond | MaximumRate


class UdpSend(Tagged, frozen=True, kw_only=True, tag="udp_send"):
    """Sends datagrams of one size to one destination, each at its intended time."""

    destination: str
    """IP address and port, such as `10.0.0.1:5201` or `[fd00::1]:5201`."""
    session: int
    """Tag of the datagrams, 16 bits; the receiver ignores others."""
    schedule: Schedule
    payload_bytes: int
    """UDP payload of each datagram, 12 to 65507."""
    rate: Rate
    batch: int
    """The most datagrams that one system call may carry, 1 to 1024."""
    content: Content
    socket: SocketOptions = SocketOptions()


class UdpReceive(Tagged, frozen=True, kw_only=True, tag="udp_receive"):
    """Receives the datagrams of one session from the first source that sends any."""

    bind: str
    """Where to listen; port 0 lets the system choose."""
    session: int
    schedule: Schedule
    linger: int = DEFAULT_LINGER
    """How long to wait for stragglers after the schedule, ns; ends early after a quarter of it in silence."""
    timestamps: Timestamps = "kernel"
    """`kernel` is before the decryption on a node that decrypts the packets itself."""
    socket: SocketOptions = SocketOptions()
    """Its buffer has 4 MiB where there is none."""


class UdpSent(Tagged, frozen=True, kw_only=True, tag="udp_send"):
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


class UdpReceived(Tagged, frozen=True, kw_only=True, tag="udp_receive"):
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
