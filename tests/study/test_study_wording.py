"""Points in words."""

from __future__ import annotations

import pytest

from tunnelbench.study.points import Point
from tunnelbench.study.quantity import MAXIMUM, Bursts, SendingRate
from tunnelbench.study.wording import point_title

TCP = Point(transport="tcp", ip="ipv4", payload_bytes=131_072, rate=None, direction="forward", load="engine")
UDP = Point(transport="udp", ip="ipv4", payload_bytes=1400, rate=MAXIMUM, direction="forward", load="engine")


def test_points() -> None:
    assert point_title(TCP) == "TCP over IPv4, 128 KiB writes, forward, engine"
    limited = UDP.model_copy(update={"rate": SendingRate(10_000_000), "ip": "ipv6", "direction": "reverse"})
    assert point_title(limited) == "UDP over IPv6, 1400-byte datagrams at 10 Mbit/s, reverse, engine"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"rate": Bursts(100, 10_000_000)}, "1400-byte datagrams in bursts of 100 every 10 ms, forward"),
        ({"rate": SendingRate(9, "packets/s"), "direction": "both"}, "at 9 packets/s, in both directions"),
        ({"sending": "per-packet", "content": "zeros"}, "payload of zeros, sent per-packet, forward"),
        ({"sending": "batched", "content": "random"}, "as fast as possible, forward, engine"),
        ({"profile": "dns", "payload_bytes": None, "rate": None}, "UDP over IPv4, dns, forward"),
        (
            {"profile": "request-response", "payload_bytes": 64, "rate": None, "direction": None},
            "UDP over IPv4, 64-byte requests and responses, engine",
        ),
        (
            {"transport": "icmp", "direction": None, "payload_bytes": 56, "load": "ping"},
            "ICMP over IPv4, 56-byte echo requests one after the other, ping",
        ),
    ],
)
def test_levels_that_are_not_usual_are_told(changed: dict[str, object], words: str) -> None:
    assert words in point_title(Point.model_validate({**UDP.model_dump(), **changed}))
