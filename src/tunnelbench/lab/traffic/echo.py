"""Round trips of probes."""

from __future__ import annotations

from typing import Literal

from tunnelbench.lab.traffic.common import Histogram, SocketOptions, Tagged, Tally

Protocol = Literal["udp", "tcp"]


class EchoServe(Tagged, frozen=True, kw_only=True, tag="echo_serve"):
    """Sends back what the first source sends, until the deadline or until stopped."""

    bind: str
    protocol: Protocol
    deadline: int
    """When to end, ns after the start of the job."""


class EchoProbe(Tagged, frozen=True, kw_only=True, tag="echo_probe"):
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
    socket: SocketOptions = SocketOptions()
    deadline: int
    """When to end at the latest, ns after the start of the job."""


class Echoed(Tagged, frozen=True, tag="echo_serve"):
    """What an echo server sent back."""

    echoed: Tally
    foreign: int
    """Datagrams or connections from another source."""


class Probed(Tagged, frozen=True, kw_only=True, tag="echo_probe"):
    """What a prober saw."""

    sent: int
    replies: int
    failures: int
    """Sends or connection attempts that failed."""
    round_trip: Histogram | None
    """None without replies."""
    first_reply_after: int | None
    """From the start of the job, ns; None without replies."""
