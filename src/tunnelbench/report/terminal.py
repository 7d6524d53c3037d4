"""What closes a run in the terminal: one line per tunnel, and why there is none for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tunnelbench.report.answers import headline_sections
from tunnelbench.report.content import Content, Result, Section
from tunnelbench.report.wording import NOTHING, number, percentage, point_title, printable


def terminal_report(content: Content) -> Group:
    """Per tunnel and runtime: median throughput of TCP and UDP, its ratio to plain IP, set-up time, proof.

    Then every tunnel without a number, with its outcome and reason. Fits 80 columns.
    """
    parts: list[RenderableType] = [_plain(content.campaign.study_title, "bold"), ""]
    sections = headline_sections(content.sections)
    if sections:
        parts += [_results(sections), ""]
        parts += [*(_plain(point_title(section.point)) for section in sections), ""]
    if content.unmeasured:
        parts.append(_unmeasured(content))
    return Group(*parts)


def _results(sections: Sequence[Section]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=0, pad_edge=False, show_edge=False)
    table.add_column("Tunnel", overflow="fold")
    for section in sections:
        table.add_column(f"{_heading(section)}\nMbit/s", justify="right")
        table.add_column("of\nplain", justify="right")
    table.add_column("Set-up\nms", justify="right")
    table.add_column("Proof", justify="right")
    for runtime, lines in _by_runtime(sections).items():
        table.add_row(_plain(f"in runtime {runtime}", "italic"))
        for tunnel, results in lines.items():
            proof = next(iter(results.values())).proof
            found = (results.get(section.point.transport) for section in sections)
            numbers = [text for result in found for text in _numbers(result)]
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


def _numbers(result: Result | None) -> tuple[str, str]:
    if result is None or result.throughput is None:
        return NOTHING, NOTHING
    return number(result.throughput.median), percentage(result.throughput.ratio)


def _unmeasured(content: Content) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, show_edge=False)
    table.add_column("Without number", overflow="fold")
    table.add_column("Outcome", style="yellow")
    table.add_column("Reason", overflow="fold")
    for item in content.unmeasured:
        table.add_row(_plain(item.tunnel), item.outcome, _plain(item.reason))
    return table


def _heading(section: Section) -> str:
    return section.point.transport.upper()


def _plain(text: str, style: str = "") -> Text:
    """Text from data as it is: no markup, and no control character that a terminal would obey."""
    return Text(printable(text), style)
