"""What a point of a study means to a load."""

from __future__ import annotations

from collections.abc import Mapping

from tunnelbench.load.base import Pattern, Traffic
from tunnelbench.load.content import content_of
from tunnelbench.study.model import Socket
from tunnelbench.study.points import Point

_PATTERNS: Mapping[str, Pattern] = {
    "request-response": "request-response",
    "connect-request-response": "connect-request-response",
}


def traffic_of(point: Point, socket: Socket, files: Mapping[str, bytes], seed: int = 0) -> Traffic:
    """The traffic of a point; `files` has the bytes of contents that are named by a path."""
    pattern = _PATTERNS.get(point.profile, "stream")
    streams = point.streams or 1
    return Traffic(
        transport=point.transport,
        ip=point.ip,
        pattern=pattern,
        profile=point.profile if pattern == "stream" else "constant",
        payload_bytes=point.payload_bytes,
        concurrency=1 if pattern == "stream" else streams,
        rate=point.rate,
        direction=point.direction or "forward",
        streams=streams if pattern == "stream" else 1,
        content=None if point.content is None else content_of(point.content, files),
        sending=point.sending,
        congestion_control=point.congestion_control,
        socket=socket,
        seed=seed,
    )
