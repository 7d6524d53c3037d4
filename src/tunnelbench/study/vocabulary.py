"""The words for traffic that studies, load tools and reports share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Transport = Literal["tcp", "udp", "icmp"]
InternetProtocol = Literal["ipv4", "ipv6"]
Direction = Literal["forward", "reverse", "both"]
Sending = Literal["batched", "per-packet", "segmented"]
Background = Literal["none", "tcp", "tcp-reverse", "tcp-both"]
"""What fills the path beside the measured traffic: nothing, or one bulk TCP stream, which goes from host1 to
host2, from host2 to host1, or both ways at the same time."""
RuntimeChoice = Literal["auto", "namespace", "kernel"]


@dataclass(frozen=True)
class Profile:
    """What is sent when, as a study sees it."""

    name: str
    title: str
    """Its name in reports."""
    transports: frozenset[Transport]
    sets_payload: bool = False
    """It has sizes of its own, so that a study's `payload_bytes` don't apply to it."""
    sets_rate: bool = False
    """It has departures of its own, so that a study's `rate` doesn't apply to it."""
    is_transaction: bool = False
    """Every request waits for its response: payload goes in both directions."""


BUILT_IN_PROFILES = (
    Profile("constant", "one size at one rate", frozenset({"tcp", "udp", "icmp"})),
    Profile(
        "request-response",
        "requests and responses",
        frozenset({"tcp", "udp"}),
        sets_rate=True,
        is_transaction=True,
    ),
    Profile(
        "connect-request-response",
        "a connection for each request and response",
        frozenset({"tcp"}),
        sets_rate=True,
        is_transaction=True,
    ),
)
