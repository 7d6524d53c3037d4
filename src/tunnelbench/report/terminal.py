"""What closes a run in the terminal: one line per tunnel, and why there is none for the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tunnelbench.report.answers import headline_sections
from tunnelbench.report.content import Content, Estimate, Result, Section
from tunnelbench.report.wording import NOTHING, milliseconds, number, percentage, printable
from tunnelbench.store.database import PACKETS_NAME
from tunnelbench.study.points import Question
from tunnelbench.study.wording import point_title

_LONGEST_TUNNEL = 40
"""Columns of a terminal beyond which a tunnel's name is folded."""
_TIMES_LEGEND = "p50 and p99 are quantiles of the one-way delay, over ICMP of the round trip."


def terminal_report(content: Content) -> Group:
    """Per tunnel and runtime: what its headline points say, its set-up time, its proof.

    That is the median throughput, or transactions per second, and its ratio to plain IP; for packets at a
    fixed rate it is the one-way delay, or the round trip, and the loss. Then every tunnel without a number,
    with its outcome and reason. Fits 80 columns.
    """
    parts: list[RenderableType] = [_plain(content.campaign.study_title, "bold"), ""]
    for sections in _side_by_side(headline_sections(content.sections)):
        parts += [_results(sections), ""]
        parts += [*(_plain(point_title(section.point)) for section in sections)]
        has_times = any(section.point.question in _TIMES for section in sections)
        parts += [_TIMES_LEGEND, ""] if has_times else [""]
    if content.unmeasured:
        parts.append(_unmeasured(content))
    if not content.packet_logs.is_empty():
        parts.append(f"Packet logs: {content.packet_logs.height} files in {PACKETS_NAME}/")
    return Group(*parts)


def _side_by_side(sections: Iterable[Section]) -> list[list[Section]]:
    """What one table shows, since more don't fit a line: at most one section of each transport."""
    by_transport: dict[str, list[Section]] = {}
    for section in sections:
        by_transport.setdefault(section.point.transport, []).append(section)
    return [[section for section in row if section] for row in zip_longest(*by_transport.values())]


def _results(sections: Sequence[Section]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column("Tunnel", overflow="fold")
    for section in sections:
        for heading in _headings(section):
            table.add_column(heading, justify="right")
    table.add_column("Set-up\nms", justify="right")
    table.add_column("Proof", justify="right")
    for runtime, lines in _by_runtime(sections).items():
        table.add_row(_plain(f"in runtime {runtime}", "italic"))
        for tunnel, results in lines.items():
            proof = next(iter(results.values())).proof
            numbers = [
                text
                for section in sections
                for text in _numbers(section, results.get(section.point.transport))
            ]
            table.add_row(
                _plain(tunnel), *numbers, number(proof.setup_ms), f"{proof.proven}/{proof.instances}"
            )
        table.add_section()
    return table


def _by_runtime(sections: Sequence[Section]) -> Mapping[str, Mapping[str, Mapping[str, Result]]]:
    """Runtime to tunnel to transport to result, in the order of the first section that has it."""
    lines: dict[str, dict[str, dict[str, Result]]] = {}
    for section in sections:
        for result in section.results:
            tunnels = lines.setdefault(result.runtime, {})
            tunnels.setdefault(result.tunnel, {})[section.point.transport] = result
    return lines


def _headings(section: Section) -> tuple[str, ...]:
    transport = section.point.transport.upper()
    if section.point.question in _TIMES:
        return f"{transport}\np50\nms", f"{transport}\np99\nms", f"{transport}\nloss\n%"
    unit = "Mbit/s" if section.point.question in ("throughput", "capacity") else "per s"
    return f"{transport}\n{unit}", "of\nplain"


_TIMES: Mapping[Question, str] = {"delay": "latency", "round trip": "round_trip"}
"""What is told in times, and the beginning of its metrics' names."""


def _numbers(section: Section, result: Result | None) -> tuple[str, ...]:
    if result is None:
        return (NOTHING,) * len(_headings(section))
    times = _TIMES.get(section.point.question)
    if times is not None:
        p50, p99, loss = (result.metrics.get(name) for name in (f"{times}_p50", f"{times}_p99", "loss"))
        return (*(milliseconds(time and time.median) for time in (p50, p99)), _per_cent(loss))
    if result.ranking is None:
        return NOTHING, NOTHING
    return number(result.ranking.median), percentage(result.ranking.ratio)


def _per_cent(estimate: Estimate | None) -> str:
    """A median in at most five characters; what is lost, however little, is never 0."""
    if estimate is None:
        return NOTHING
    value = 100 * estimate.median
    return "<0.01" if 0 < value < 0.00995 else number(value)


def _unmeasured(content: Content) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    longest = max(len(item.tunnel) for item in content.unmeasured)
    table.add_column("Without number", overflow="fold", min_width=min(longest, _LONGEST_TUNNEL))
    table.add_column("Outcome", style="yellow")
    table.add_column("Reason", overflow="fold")
    for item in content.unmeasured:
        table.add_row(_plain(item.tunnel), item.outcome, _plain(item.reason))
    return table


def _plain(text: str, style: str = "") -> Text:
    """Text from data as it is: no markup, and no control character that a terminal would obey."""
    return Text(printable(text), style)
