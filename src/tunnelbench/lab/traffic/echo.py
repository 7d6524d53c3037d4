"""Round trips of probes."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunnelbench.lab.traffic.common import (
    Histogram,
    Message,
    Schedule,
    SocketOptions,
    Tagged,
    Tally,
)
from tunnelbench.lab.traffic.udp import Timestamps

Protocol = Literal["udp", "tcp", "icmp"]


class EchoServe(Tagged, frozen=True, kw_only=True, tag="echo_serve"):
    """Sends back what the first source sends, until the deadline or until stopped."""

    bind: str
    protocol: Protocol
    deadline: int
    """When to end, ns after the start of the job."""


class _EchoDestination(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="protocol"):
    address: str


class UdpEcho(_EchoDestination, frozen=True, tag="udp"):
    """An `EchoServe` job, in UDP datagrams; IP address and port, that of a port forwarded to it perhaps."""


class TcpEcho(_EchoDestination, frozen=True, tag="tcp"):
    """The same over one TCP connection."""

    proxy: str | None = None
    """A SOCKS 5 proxy that connects to the address (RFC 1928)."""


class IcmpEcho(_EchoDestination, frozen=True, tag="icmp"):
    """The system at this IP address, in ICMP echo requests."""


EchoDestination = UdpEcho | TcpEcho | IcmpEcho


class ProbeCount(Tagged, frozen=True, kw_only=True, tag="count"):
    """Probing from now on; all probes count."""

    count: int
    """The most probes to send; sends that fail are among them."""
    until_first_reply: bool = False
    """End at the first reply; until then no failure is final."""
    deadline: int
    """When to end at the latest, ns after the start of the job."""


class ProbeSchedule(Tagged, frozen=True, tag="schedule"):
    """Probing on a schedule; the probes count whose intended departure lies in its measured window."""

    schedule: Schedule


class EchoProbe(Tagged, frozen=True, kw_only=True, tag="echo_probe"):
    """Sends probes and times the replies (RFC 2681)."""

    destination: EchoDestination
    plan: ProbeCount | ProbeSchedule
    interval: int
    """Between intended departures, ns; 0 sends the next when the last is answered or given up."""
    payload_bytes: int
    """Of each probe, 12 to 65507, without ICMP's own header."""
    marker: bytes | None = None
    """Repeated after the 12 bytes of the header."""
    timeout: int
    """How long a reply, and over TCP the connection, may take, ns."""
    socket: SocketOptions = SocketOptions()
    """Without a port for ICMP."""


class Echoed(Tagged, frozen=True, tag="echo_serve"):
    """What an echo server sent back."""

    echoed: Tally
    foreign: int
    """Datagrams or connections from another source."""


class RoundTripSeries(Message, frozen=True, kw_only=True):
    """Round trips in equal steps from the start of the schedule, or of a job without one."""

    step: int
    """ns."""
    begun: list[int]
    completed: list[int]
    shortest: list[int | None]
    """Of those completed, ns; None where there is none."""
    mean: list[float | None]
    """ns."""
    longest: list[int | None]
    """ns."""


class Probed(Tagged, frozen=True, kw_only=True, tag="echo_probe"):
    """What a prober saw; loss is `1 - replies / sent`. On a schedule all but the totals are of its window."""

    sent: int
    replies: int
    """In time."""
    failures: int
    """Sends or connection attempts that failed, and probes about which an ICMP error came back."""
    duplicates: int
    """Further copies of `replies`."""
    reordered: int
    """Of `replies`, to a probe sent before one whose reply came earlier (RFC 4737)."""
    skipped: int
    """Due and never sent, because the prober was more than 10 ms behind."""
    round_trip: Histogram | None
    """From the real departure; None without replies."""
    round_trip_from_intended: Histogram | None
    """From the intended departure, so that a late prober hides no waiting; None without an interval."""
    first_reply_after: int | None
    """From the start of the job or of the schedule, ns; None without replies."""
    timestamps: Timestamps
    """Where the arrival times come from."""
    series: RoundTripSeries
    """Each probe and its reply in the step of the probe's intended departure."""
    total_sent: int
    """In all phases."""
    total_replies: int
    late: int
    """Replies after the time limit, in all phases."""
    processor: int
    """Processor time of the prober in the measured window, ns."""
