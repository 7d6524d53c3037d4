"""Lines over the payload's size: one figure for each metric that a family of points has."""

from __future__ import annotations

from collections.abc import Iterator

from tunnelbench.report.content import Result
from tunnelbench.report.drawing import Drawing
from tunnelbench.report.families import Family
from tunnelbench.report.line_figures import METRICS, WIRE, Over, line_figures
from tunnelbench.report.wording import family_title, point_slug


def family_figures(family: Family) -> Iterator[Drawing]:
    """A figure for each metric.

    The bytes on the wire rise by a step where datagrams begin to be cut up; TCP cuts what is written into
    segments of its own.
    """
    results = [result for section in family.sections for result in section.results]
    cut = {WIRE: "bytes on the wire for each byte of payload"} if family.point.transport != "tcp" else {}
    return line_figures(
        results, _PAYLOAD, family_title(family.point), point_slug(family.point), METRICS | cut
    )


def _bytes(result: Result) -> int:
    return result.point.payload_bytes or 0


_PAYLOAD = Over("payload", "bytes", "payload in bytes", _bytes, lambda result: result.tunnel)
