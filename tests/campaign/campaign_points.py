"""Points for tests of campaigns."""

from __future__ import annotations

from tunnelbench.study.points import Point
from tunnelbench.study.quantity import parse_sending_rate
from tunnelbench.study.vocabulary import Transport


def point(transport: Transport, payload_bytes: int, **levels: object) -> Point:
    """TCP as fast as it goes, or UDP at 30 Mbit/s where `levels` don't say otherwise."""
    rate = None if transport == "tcp" else parse_sending_rate("30 Mbit/s")
    made = Point(
        transport=transport,
        ip="ipv4",
        payload_bytes=payload_bytes,
        rate=rate,
        direction="forward",
        load="engine",
    )
    return made.model_copy(update=levels)
