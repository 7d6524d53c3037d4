"""Lines over the number of clients that use one gateway at once."""

from __future__ import annotations

from collections.abc import Iterator

from tunnelbench.report.content import Result, Section
from tunnelbench.report.drawing import Drawing
from tunnelbench.report.line_figures import METRICS, Over, line_figures
from tunnelbench.report.wording import point_slug
from tunnelbench.study.wording import point_title

_METRICS = METRICS | {
    "throughput_least": "throughput of the slowest client in Mbit/s",
    "fairness": "fairness between clients (Jain's index)",
}


def client_figures(section: Section) -> Iterator[Drawing]:
    """A figure for each metric of a point, where there were different numbers of clients."""
    metrics = {name: words for name, words in _METRICS.items() if not _is_given(name, section)}
    return line_figures(
        section.results, _CLIENTS, point_title(section.point), point_slug(section.point), metrics
    )


def _is_given(metric: str, section: Section) -> bool:
    """At a fixed rate, all tunnels that carry it have the same throughput."""
    return section.at_fixed_rate and metric.startswith("throughput")


def _clients(result: Result) -> int:
    return result.treatment.clients


def _tunnel(result: Result) -> str:
    """A tunnel's name without what it says of clients."""
    return result.tunnel.replace(f" with {result.treatment.clients} clients", "")


_CLIENTS = Over("number of clients", "clients", "clients at once", _clients, _tunnel)
