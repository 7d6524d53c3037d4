"""A point: one combination of the levels that are easy to change, and to which traffic each applies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

from tunnelbench.study.fields import Frozen, SendingRateLevel
from tunnelbench.study.quantity import CAPACITY, MAXIMUM
from tunnelbench.study.vocabulary import (
    Background,
    Direction,
    InternetProtocol,
    Profile,
    Sending,
    Transport,
)

Question = Literal["throughput", "capacity", "delay", "round trip", "transactions"]
"""What tells tunnels apart at a point."""


class Point(Frozen, frozen=True):
    """The levels that are easy to change: they vary inside an instance. None where a factor doesn't apply."""

    transport: Transport
    ip: InternetProtocol
    profile: str = "constant"
    payload_bytes: int | None
    """Payload of a datagram, an echo request or a request, or size of a TCP write."""
    rate: SendingRateLevel | None
    """How fast datagrams or echo requests are sent."""
    direction: Direction | None
    streams: int | None = None
    content: str | None = None
    sending: Sending | None = None
    congestion_control: str | None = None
    """None also where the system's own is used."""
    background: Background = "none"
    """What fills the path meanwhile."""
    load: str

    @property
    def key(self) -> str:
        """Stable name, different for every point."""
        words = [self.transport, self.ip]
        words += [f"profile={self.profile}"] if self.profile != "constant" else []
        words += [f"payload={self.payload_bytes}"] if self.payload_bytes is not None else []
        words += [f"rate={self.rate}"] if self.rate is not None else []
        words += [self.direction] if self.direction is not None else []
        words += [f"{name}={level}" for name, level in self.unusual.items()]
        return " ".join([*words, self.load])

    @property
    def unusual(self) -> Mapping[str, str | int]:
        """The levels, by factor, that differ from what studies have where they don't say."""
        levels = {name: getattr(self, name) for name in USUAL}
        return {name: level for name, level in levels.items() if level is not None and level != USUAL[name]}

    @property
    def question(self) -> Question:
        """What tells tunnels apart here: at a fixed rate all have the same throughput."""
        if self.transport == "icmp":
            return "round trip"
        if self.profile in TRANSACTIONS:
            return "transactions"
        if self.transport == "tcp":
            return "throughput" if self.profile == "constant" else "delay"
        if self.rate == CAPACITY:
            return "capacity"
        return "throughput" if self.rate == MAXIMUM else "delay"

    @property
    def without_background(self) -> Point:
        """The same traffic with nothing beside it."""
        return self.model_copy(update={"background": "none"})


USUAL: Mapping[str, object] = {
    "streams": 1,
    "content": "random",
    "sending": "batched",
    "congestion_control": None,
    "background": "none",
}
"""The levels that go without saying."""

TRANSACTIONS = frozenset({"request-response", "connect-request-response"})

APPLIES: Mapping[str, Callable[[Transport, Profile], bool]] = {
    "payload_bytes": lambda _, profile: not profile.sets_payload,
    "rate": lambda transport, profile: transport != "tcp" and not profile.sets_rate,
    "direction": lambda transport, profile: _is_one_way(transport, profile),
    "streams": lambda transport, _: transport == "tcp",
    "content": lambda transport, profile: _is_one_way(transport, profile),
    "sending": lambda transport, profile: transport == "udp" and _is_one_way(transport, profile),
    "congestion_control": lambda transport, _: transport == "tcp",
}
"""To which traffic a factor applies; the others apply to all."""

CHOSEN_BY_LOAD = frozenset({"content", "sending"})
"""Factors in which a load may have a way of its own; then they don't apply to it."""


def _is_one_way(transport: Transport, profile: Profile) -> bool:
    """Whether payload has one source and one sink, and not to come back."""
    return transport != "icmp" and not profile.is_transaction
