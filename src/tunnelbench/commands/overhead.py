"""`tunnelbench overhead`: what a tunnel adds to packets, computed from its formats alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import ascii_lowercase
from typing import Annotated, TypeVar, get_args

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.errors import UserError
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead.model import (
    COUNTED,
    ETHERNET,
    Ceiling,
    Packet,
    Prediction,
    ceiling,
    largest_unfragmented_payload,
    predict,
)
from tunnelbench.overhead.picture import COLOURS, fields_once, shown_packets, svg
from tunnelbench.study.catalogue import Choice
from tunnelbench.study.nearest import advice_on
from tunnelbench.study.quantity import format_bit_rate, parse_bit_rate, parse_bytes
from tunnelbench.study.vocabulary import Transport
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import written

Parsed = TypeVar("Parsed")

PAYLOADS: Mapping[Transport, tuple[int, ...]] = {
    "udp": (64, 128, 256, 512, 1024, 1300, 1400, 1472),
    "tcp": (64, 512, 1448, 131_072),
    "icmp": (56, 512, 1400),
}
"""Sizes that studies ask for."""


@dataclass(frozen=True)
class Question:
    """What is asked of each tunnel."""

    payloads: tuple[int, ...]
    transport: Transport
    family: Family
    mtu: int
    link_rate: int

    @property
    def title(self) -> str:
        """In words."""
        name = "echo requests" if self.transport == "icmp" else self.transport.upper()
        return f"{name} over {written(self.family)}, MTU {self.mtu}"


@dataclass(frozen=True)
class Answer:
    """What the model says of one payload size."""

    prediction: Prediction
    on_counted: Ceiling
    on_ethernet: Ceiling


@dataclass(frozen=True)
class Asked:
    """One tunnel with its answers."""

    name: str
    encapsulation: Encapsulation
    largest: int
    answers: tuple[Answer, ...]


def _complete_tunnels() -> list[str]:
    return [f"{name}/{suite}" for name, tunnel in all_tunnels().items() for suite in tunnel.suites]


def overhead_command(
    tunnel: Annotated[
        str, typer.Argument(metavar="VPN[/SUITE]", help="May be a glob.", autocompletion=_complete_tunnels)
    ],
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[OPTION=LEVEL]...", help="Levels of the VPN's options."),
    ] = None,
    payload: Annotated[
        list[str] | None,
        typer.Option(help="Size of a datagram or a write, such as 1400 or '128 KiB'; may be repeated."),
    ] = None,
    transport: Annotated[
        str | None, typer.Option(help="tcp, udp or icmp.", show_default="udp, or tcp where there is no other")
    ] = None,
    ip: Annotated[str, typer.Option(help="IP inside the tunnel: ipv4 or ipv6.")] = "ipv4",
    outer: Annotated[
        str | None, typer.Option(help="IP between the gateways: ipv4 or ipv6.", show_default="ipv4")
    ] = None,
    mtu: Annotated[int, typer.Option(min=576, max=65_535, help="Of all links, in bytes.")] = 1500,
    link_rate: Annotated[str, typer.Option(help="Of the wire, for the ceiling.")] = "1 Gbit/s",
    picture: Annotated[
        Path | None, typer.Option("--svg", help="Write the picture of the first payload's packets here.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Bytes on the wire for a payload, and the most that a link can carry, from formats alone.

    Nothing is measured, and no lab is needed. Several tunnels (`ipsec-manual/*`) are compared in one table;
    a single one is shown in detail, with a picture of its packets.
    """
    choices = catalogue().tunnels(" ".join([tunnel, *(options or [])]))
    asked_transport = _one_of(transport or _usual_transport(choices), get_args(Transport), "transport")
    question = Question(
        tuple(_read(parse_bytes, text) for text in payload) if payload else PAYLOADS[asked_transport],
        asked_transport,
        Family(_one_of(ip, [*Family], "IP version")),
        mtu,
        _read(parse_bit_rate, link_rate),
    )
    if 0 in question.payloads:
        raise UserError("a payload of no bytes has no overhead for each byte")
    outer_family = Family(_one_of(outer, [*Family], "IP version")) if outer else None
    asked = [_ask(choice, outer_family, question) for choice in choices]
    if picture is not None:
        if len(asked) > 1:
            raise UserError(f"{tunnel} means {len(asked)} tunnels; a picture is of one")
        picture.write_text(svg(*_words(asked[0], question), asked[0].answers[0].prediction), "utf-8")
    if as_json:
        typer.echo(json.dumps([_as_json(one, question) for one in asked], indent=2))
        return
    console = Console()
    console.print(_comparison(asked, question) if len(asked) > 1 else _detail(asked[0], question, console))


def _usual_transport(choices: Sequence[Choice]) -> Transport:
    """UDP, unless none of them carries it."""
    variants = [(all_tunnels()[choice.vpn], choice) for choice in choices]
    carried = {
        transport
        for vpn, choice in variants
        for transport, _ in vpn.carried(vpn.variant(choice.suite, choice.levels))
    }
    return "udp" if "udp" in carried else "tcp"


def _ask(choice: Choice, outer: Family | None, question: Question) -> Asked:
    vpn = all_tunnels()[choice.vpn]
    variant = vpn.variant(choice.suite, choice.levels, outer)
    if variant.outer not in vpn.outer_families:
        raise UserError(f"{vpn.title} has no {written(variant.outer)} between the gateways")
    if (question.transport, question.family) not in vpn.carried(variant):
        raise UserError(
            f"{choice.name} does not carry {question.transport.upper()} over {written(question.family)}"
        )
    encapsulation = vpn.encapsulation(variant)
    if encapsulation is None:
        raise UserError(f"nobody has described the packets of {choice.name} yet")
    where = (question.transport, question.family)
    try:
        return Asked(
            choice.name,
            encapsulation,
            largest_unfragmented_payload(encapsulation, *where, question.mtu),
            tuple(
                Answer(
                    predict(encapsulation, size, *where, question.mtu),
                    ceiling(encapsulation, size, *where, question.link_rate, question.mtu, COUNTED),
                    ceiling(encapsulation, size, *where, question.link_rate, question.mtu, ETHERNET),
                )
                for size in question.payloads
            ),
        )
    except ValueError as error:
        raise UserError(f"{choice.name}: {error}") from error


def _words(asked: Asked, question: Question) -> tuple[str, str]:
    """Title and subtitle of a picture."""
    predicted = asked.answers[0].prediction
    packets = "1 packet" if len(predicted.packets) == 1 else f"{len(predicted.packets)} packets"
    return (
        asked.name,
        f"{predicted.payload_bytes} bytes of payload in {question.title}: {packets}, "
        f"{predicted.wire_bytes} bytes on the wire, {predicted.ratio:.3f} per byte of payload",
    )


def _detail(asked: Asked, question: Question, console: Console) -> RenderableType:
    title, subtitle = _words(asked, question)
    return Group(
        Text(title, "bold"),
        Text(f"Largest payload in one packet: {asked.largest} bytes ({question.title})."),
        _table_of_one(asked, question),
        *_explanation(asked, question),
        "",
        Text(subtitle),
        *_bars(asked.answers[0].prediction, console.width),
        _legend(asked.answers[0].prediction),
    )


def _table_of_one(asked: Asked, question: Question) -> Table:
    table = _table("payload bytes", question)
    answers = asked.answers
    table.add_row("wire packets", *(str(len(one.prediction.packets)) for one in answers))
    table.add_row("wire bytes", *(str(one.prediction.wire_bytes) for one in answers))
    table.add_row("ratio", *(f"{one.prediction.ratio:.3f}" for one in answers))
    if asked.encapsulation.fills_segments:
        table.add_row("full segments", *(f"{one.prediction.bulk_ratio:.3f}" for one in answers))
    table.add_row("Mbit/s, shaped", *(f"{one.on_counted.mbit_per_second:.4g}" for one in answers))
    table.add_row("Mbit/s, real", *(f"{one.on_ethernet.mbit_per_second:.4g}" for one in answers))
    return table


def _comparison(asked: Sequence[Asked], question: Question) -> RenderableType:
    table = _table("tunnel", question)
    table.add_column("largest", justify="right")
    for one in asked:
        ratios = (f"{answer.prediction.bulk_ratio:.3f}" for answer in one.answers)
        table.add_row(one.name, *ratios, str(one.largest))
    return Group(
        Text(f"Bytes on the wire per byte of payload: {question.title}; a column for each payload size."),
        table,
        "largest: the largest payload in one packet.",
        *_explanation(asked[0], question)[:1],
    )


def _explanation(asked: Asked, question: Question) -> list[str]:
    rate = format_bit_rate(question.link_rate)
    lines = [
        "Wire bytes are those that an interface counts: with Ethernet headers, without check sequences; "
        "ratio: wire bytes per byte of payload.",
    ]
    if asked.encapsulation.fills_segments:
        lines.append("Full segments: the same where there is always more to send in the TCP stream.")
    elif asked.encapsulation.stream:
        lines.append(
            "Each message in the TCP stream leaves at once, so that its last segment is seldom full."
        )
    if asked.encapsulation.varying:
        lines.append(f"Single packets may be longer, by up to {asked.encapsulation.varying} bytes.")
    lines.append(
        f"Mbit/s: the most payload on a link of {rate}, as the lab shapes it (only wire bytes take time), "
        "and of real Ethernet (24 bytes more for each frame of at least 64)."
    )
    if asked.encapsulation.compresses:
        lines.append("The tunnel compresses: this is for packets that neither shrink nor grow by that.")
    return lines


def _table(heading: str, question: Question) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, show_edge=False)
    table.add_column(heading, overflow="fold")
    for size in question.payloads:
        table.add_column(str(size), justify="right")
    return table


def _bars(prediction: Prediction, width: int) -> Iterator[Text]:
    """A line for each packet, to scale, but no field narrower than one column; `_legend` has the letters."""
    letters = _letters(prediction)
    largest = max(packet.size for packet in prediction.packets)
    for packet in shown_packets(prediction.packets):
        yield Text("…") if packet is None else _bar(packet, letters, width / largest)


def _bar(packet: Packet, letters: Mapping[str, str], columns_per_byte: float) -> Text:
    bar = Text(no_wrap=True, overflow="crop")
    widths = [max(1, int(field.size * columns_per_byte)) for field in packet.fields]
    excess = sum(widths) - round(packet.size * columns_per_byte)
    # Fields too small to be seen take their columns from the widest one, which is the payload or nearly so.
    widest = widths.index(max(widths))
    widths[widest] = max(1, widths[widest] - excess)
    for field, columns in zip(packet.fields, widths, strict=True):
        bar.append(letters[field.name] * columns, f"#1f2328 on {COLOURS[field.kind]}")
    return bar


def _legend(prediction: Prediction) -> Table:
    letters = _letters(prediction)
    table = Table.grid(padding=(0, 1))
    for field in fields_once(prediction.packets):
        swatch = Text(f" {letters[field.name]} ", f"#1f2328 on {COLOURS[field.kind]}")
        table.add_row(swatch, field.name, Text(str(field.size), justify="right"))
    return table


def _letters(prediction: Prediction) -> Mapping[str, str]:
    """A letter for each field; payload, which is most of it, has a dot."""
    names = [field.name for field in fields_once(prediction.packets) if field.name != "payload"]
    return {"payload": "·"} | dict(zip(names, ascii_lowercase, strict=False))


def _as_json(asked: Asked, question: Question) -> dict[str, object]:
    return {
        "tunnel": asked.name,
        "transport": question.transport,
        "ip": question.family.value,
        "mtu": question.mtu,
        "link_rate_bit_per_second": question.link_rate,
        "largest_unfragmented_payload_bytes": asked.largest,
        "in_a_tcp_stream": asked.encapsulation.stream,
        "compresses": asked.encapsulation.compresses,
        "layers": [
            {"name": layer.name, "reference": layer.reference} for layer in asked.encapsulation.layers
        ],
        "payloads": [
            {
                "payload_bytes": answer.prediction.payload_bytes,
                "wire_bytes": answer.prediction.wire_bytes,
                "bytes_per_byte": answer.prediction.ratio,
                "bytes_per_byte_in_full_segments": answer.prediction.bulk_ratio,
                "ceiling_mbit_per_second": answer.on_counted.mbit_per_second,
                "ceiling_on_ethernet_mbit_per_second": answer.on_ethernet.mbit_per_second,
                "packets": [
                    {
                        "bytes": packet.size,
                        "fields": [
                            {"name": field.name, "bytes": field.size, "kind": field.kind.value}
                            for field in packet.fields
                        ],
                    }
                    for packet in answer.prediction.packets
                ],
            }
            for answer in asked.answers
        ],
    }


def _one_of(text: str, known: Sequence[Parsed], kind: str) -> Parsed:
    for value in known:
        if value == text:
            return value
    raise UserError(f"unknown {kind} '{text}'", advice=advice_on(text, [str(v) for v in known], f"{kind}s"))


def _read(parse: Callable[[object], int], text: str) -> int:
    """A quantity; a bare number is of bytes."""
    try:
        return parse(int(text) if text.isdecimal() else text)
    except ValueError as error:
        raise UserError(str(error)) from error
