"""What a load tool can do, as data, and the reason that follows where it can't do what is asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tunnelbench.load.base import Pattern, Traffic
from tunnelbench.study.model import Socket
from tunnelbench.study.quantity import MAXIMUM, Bursts, Capacity
from tunnelbench.study.vocabulary import Direction, Transport


@dataclass(frozen=True, slots=True, kw_only=True)
class Abilities:
    """The traffic that a tool can make."""

    kinds: frozenset[tuple[Transport, Pattern]]
    profiles: frozenset[str] = frozenset({"constant"})
    """How it can shape a stream."""
    directions: frozenset[Direction] = frozenset({"forward", "reverse"})
    """Of a stream."""
    most_streams: int = 1
    most_requests: int = 1
    """Under way at once."""
    least_datagram: int = 1
    """Bytes of payload."""
    paced: bool = True
    """Whether it can send datagrams at a given rate."""
    bursts: bool = False
    searches: bool = False
    """Whether its trials can be those of a search for capacity."""
    congestion_control: bool = False
    socket: frozenset[str] = frozenset()
    """The fields of a study's `[socket]` that it can set."""

    def refusal(self, title: str, traffic: Traffic) -> str | None:
        """Why a tool with these abilities can't make some traffic; None where it can."""
        lack = next(self._lacks(traffic), None)
        return None if lack is None else f"{title} can't {lack}"

    def _lacks(self, traffic: Traffic) -> Iterator[str]:
        name = traffic.transport.upper()
        if (traffic.transport, traffic.pattern) not in self.kinds:
            yield {
                "stream": "send echo requests over ICMP" if name == "ICMP" else f"send {name}",
                "request-response": f"exchange requests and responses over {name}",
                "connect-request-response": f"open a {name} connection for each request",
            }[traffic.pattern]
        if traffic.profile not in self.profiles:
            yield f"send in the profile {traffic.profile}"
        if traffic.direction not in self.directions:
            yield f"send {name} in the direction {traffic.direction!r}"
        if traffic.streams > self.most_streams:
            yield f"send {traffic.streams} streams at once"
        if traffic.concurrency > self.most_requests:
            yield f"have {traffic.concurrency} requests under way at once"
        if (
            traffic.transport == "udp"
            and (traffic.payload_bytes or self.least_datagram) < self.least_datagram
        ):
            yield f"send datagrams of less than {self.least_datagram} bytes"
        if isinstance(traffic.rate, Capacity) and not self.searches:
            yield "be searched for a capacity with; the engine can"
        elif traffic.rate not in (None, MAXIMUM) and not self.paced:
            yield "send at a given rate"
        if isinstance(traffic.rate, Bursts) and not self.bursts:
            yield "send in bursts"
        if traffic.congestion_control is not None and not self.congestion_control:
            yield "choose TCP's congestion control"
        for option, value in traffic.socket:
            is_asked = value != Socket.model_fields[option].default
            if is_asked and option not in self.socket and _applies(option, traffic.transport):
                yield f"set socket.{option}"


def _applies(option: str, transport: Transport) -> bool:
    return transport == "tcp" or option not in ("mss", "no_delay")
