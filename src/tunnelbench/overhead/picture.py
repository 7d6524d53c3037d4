"""A picture of the packets that a payload becomes: bars to scale, and below them every field with its size.

The SVG stands alone and follows light and dark mode of who shows it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil
from xml.sax.saxutils import escape

from tunnelbench.overhead.encapsulation import Field, Kind
from tunnelbench.overhead.model import Packet, Prediction

COLOURS: Mapping[Kind, str] = {
    Kind.LINK: "#999999",
    Kind.NETWORK: "#0072b2",
    Kind.TRANSPORT: "#56b4e9",
    Kind.TUNNEL: "#e69f00",
    Kind.INITIALISATION_VECTOR: "#cc79a7",
    Kind.PADDING: "#f0e442",
    Kind.INTEGRITY: "#009e73",
    Kind.PAYLOAD: "#d9dee3",
}
"""Told apart by colour-blind eyes, too (Okabe and Ito); payload is pale, since all else is overhead."""

MOST_BARS = 6
"""Of more packets the first ones are drawn, and the last one."""

_WIDTH, _MARGIN = 920, 24
_BAR, _GAP = 34, 12
_LINE, _COLUMNS = 20, 3
_SMALLEST_LABELLED = 60
_STYLE = """
text { font: 13px "Liberation Sans", Arial, Helvetica, sans-serif; fill: #1f2328; }
.title { font-size: 16px; font-weight: bold; }
.quiet { fill: #57606a; }
.inside { fill: #1f2328; }
.paper { fill: #ffffff; }
.bar { stroke: #ffffff; stroke-width: 0.5; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6e9ec; }
  .quiet { fill: #a3abb3; }
  .inside { fill: #1f2328; }
  .paper { fill: #15181c; }
  .bar { stroke: #15181c; }
}
"""


def svg(title: str, subtitle: str, prediction: Prediction) -> str:
    """The picture as the text of an SVG file."""
    drawn = shown_packets(prediction.packets)
    listed = fields_once(prediction.packets)
    lines = ceil(len(listed) / _COLUMNS)
    top = 72
    height = top + len(drawn) * (_BAR + _GAP) + 24 + lines * _LINE + 16
    spoken = f"{title}: {subtitle}. " + ", ".join(f"{field.name} {field.size}" for field in listed)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" role="img" aria-label="{_text(spoken)}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="paper" width="{_WIDTH}" height="{height}"/>',
        f'<text class="title" x="{_MARGIN}" y="32">{_text(title)}</text>',
        f'<text class="quiet" x="{_MARGIN}" y="54">{_text(subtitle)}</text>',
    ]
    largest = max(packet.size for packet in prediction.packets)
    for number, packet in enumerate(drawn):
        parts += _bar(packet, top + number * (_BAR + _GAP), largest)
    parts += _legend(listed, top + len(drawn) * (_BAR + _GAP) + 24, lines)
    return "\n".join([*parts, "</svg>", ""])


def shown_packets(packets: Sequence[Packet]) -> list[Packet | None]:
    """The packets to draw, in order; None stands for those left out."""
    if len(packets) <= MOST_BARS:
        return list(packets)
    return [*packets[: MOST_BARS - 2], None, packets[-1]]


def _bar(packet: Packet | None, y: int, largest: int) -> Iterator[str]:
    if packet is None:
        yield f'<text class="quiet" x="{_MARGIN}" y="{y + _BAR // 2 + 4}">… more of the same …</text>'
        return
    room = _WIDTH - 2 * _MARGIN - 80
    x = float(_MARGIN)
    for field in packet.fields:
        width = room * field.size / largest
        yield (
            f'<rect class="bar" x="{x:.2f}" y="{y}" width="{width:.2f}" height="{_BAR}" '
            f'fill="{COLOURS[field.kind]}"><title>{_text(field.name)}: {_count(field.size)}</title></rect>'
        )
        if width >= _SMALLEST_LABELLED and field.kind is Kind.PAYLOAD:
            middle = x + width / 2
            yield (
                f'<text class="inside" x="{middle:.1f}" y="{y + _BAR // 2 + 5}" text-anchor="middle">'
                f"payload {field.size}</text>"
            )
        x += width
    yield f'<text class="quiet" x="{x + 8:.1f}" y="{y + _BAR // 2 + 5}">{_count(packet.size)}</text>'


def _legend(fields: Sequence[Field], y: int, lines: int) -> Iterator[str]:
    column_width = (_WIDTH - 2 * _MARGIN) // _COLUMNS
    for place, field in enumerate(fields):
        column, line = divmod(place, lines)
        x, baseline = _MARGIN + column * column_width, y + line * _LINE
        yield (
            f'<rect x="{x}" y="{baseline - 11}" width="13" height="13" rx="2" fill="{COLOURS[field.kind]}"/>'
        )
        yield f'<text x="{x + 22}" y="{baseline}">{_text(field.name)}</text>'
        end = x + column_width - 40
        yield f'<text class="quiet" x="{end}" y="{baseline}" text-anchor="end">{field.size}</text>'


def fields_once(packets: Sequence[Packet]) -> list[Field]:
    """Every field in the order in which it is first met; its size is that of all packets together."""
    sizes: dict[tuple[str, Kind], int] = {}
    for packet in packets:
        for field in packet.fields:
            key = field.name, field.kind
            sizes[key] = sizes.get(key, 0) + field.size
    return [Field(name, size, kind) for (name, kind), size in sizes.items()]


def _count(size: int) -> str:
    return f"{size} byte" if size == 1 else f"{size} bytes"


def _text(text: str) -> str:
    return escape(text, {'"': "&quot;"})
