"""What crosses the wire for a given payload, and how much payload a link can carry.

Sizes are those that an interface counts: with the Ethernet header (14 bytes), without frame check sequence,
preamble and gap. The senders are taken to know the MTU of the path, as they do once the first datagram that
was too large came back (RFC 1191, RFC 8201); hosts' links have the same MTU as the wire. Acknowledgements of
TCP go the other way and are not counted, neither are handshakes, new keys and keepalives.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tunnelbench.lab.shaping import ETHERNET_FRAMING
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import layers
from tunnelbench.overhead.encapsulation import (
    Encapsulation,
    Field,
    Inner,
    Kind,
    Layer,
    Oversize,
    fields_around,
    size_around,
)
from tunnelbench.study.vocabulary import Transport

PLAIN = Encapsulation()
"""Routing and nothing else."""

_ICMP = layers.header("ICMP", "RFC 792, RFC 4443", 8, Kind.TRANSPORT)
_IPV6_FRAGMENT_HEADER = Field("fragment header", 8, Kind.NETWORK)


@dataclass(frozen=True)
class Packet:
    """One frame on the wire, field by field."""

    fields: tuple[Field, ...]

    @cached_property
    def size(self) -> int:
        """In bytes, Ethernet header included."""
        return _size(self.fields)


@dataclass(frozen=True)
class Prediction:
    """What one piece of payload becomes on the wire."""

    payload_bytes: int
    packets: tuple[Packet, ...]
    """In order of departure. In a TCP stream, those of a message that travels alone."""
    bulk_bytes: float
    """Bytes on the wire for this payload where there is always more to send: its share of full segments in a
    TCP stream whose messages fill them; otherwise those of the packets."""
    bulk_packets: float
    """Likewise its share of packets."""

    @property
    def wire_bytes(self) -> int:
        """Bytes of all packets, Ethernet headers included."""
        return sum(packet.size for packet in self.packets)

    @property
    def ratio(self) -> float:
        """Bytes on the wire for each byte of payload, the message travelling alone."""
        return self.wire_bytes / self.payload_bytes

    @property
    def bulk_ratio(self) -> float:
        """Bytes on the wire for each byte of payload where there is always more to send."""
        return self.bulk_bytes / self.payload_bytes


@dataclass(frozen=True)
class Framing:
    """What a link's rate is used up by beyond the bytes that an interface counts."""

    name: str
    per_packet: int = 0
    """Bytes added to each packet."""
    minimum: int = 0
    """Smaller packets take as long as one of this size, before what is added."""


ETHERNET = Framing("Ethernet", per_packet=ETHERNET_FRAMING, minimum=60)
"""A real port: frame check sequence, preamble with start delimiter, and gap; frames of at least 64 bytes."""
COUNTED = Framing("counted")
"""What the lab's shaped links do: only bytes that an interface counts take time (tc-tbf(8))."""


@dataclass(frozen=True)
class Ceiling:
    """What a link can carry at most, with nothing else on it."""

    mbit_per_second: float
    """Payload, in 10^6 bit/s."""
    pieces_per_second: float
    """Pieces of payload of the size asked for: datagrams, or segments of TCP."""
    packets_per_second: float
    """On the wire."""


def predict(
    encapsulation: Encapsulation,
    payload_bytes: int,
    transport: Transport,
    family: Family,
    link_mtu: int = 1500,
) -> Prediction:
    """The packets that a payload becomes: one datagram, or one write to a TCP connection.

    Raises ValueError where the link's MTU is too small for the tunnel.
    """
    tunnel = _for_family(encapsulation, family)
    pieces = list(_inner_pieces(tunnel, payload_bytes, transport, family, link_mtu))
    if tunnel.stream:
        return _in_stream(tunnel, payload_bytes, pieces, link_mtu)
    packets = [
        packet
        for piece in pieces
        for packet in _on_wire(tunnel, fields_around(tunnel.layers, piece), link_mtu)
    ]
    wire_bytes = float(sum(packet.size for packet in packets))
    return Prediction(payload_bytes, tuple(packets), wire_bytes, float(len(packets)))


def bulk_payload(encapsulation: Encapsulation, family: Family, link_mtu: int = 1500) -> int:
    """The payload of one TCP segment, or one message of a byte stream, where there is always more to send."""
    tunnel = _for_family(encapsulation, family)
    if tunnel.inner is Inner.STREAM:
        return tunnel.chunk
    return _segment_payload(tunnel, family, link_mtu)


def largest_unfragmented_payload(
    encapsulation: Encapsulation, transport: Transport, family: Family, link_mtu: int = 1500
) -> int:
    """The largest payload that crosses the wire in one packet; for TCP, in one segment."""

    def packets(payload: int) -> int:
        return len(predict(encapsulation, payload, transport, family, link_mtu).packets)

    found = bisect_right(range(1, link_mtu + 1), 1, key=packets)
    if found == 0:
        raise ValueError(f"an MTU of {link_mtu} bytes leaves no room for payload")
    return found


def ceiling(
    encapsulation: Encapsulation,
    payload_bytes: int,
    transport: Transport,
    family: Family,
    link_rate: float,
    link_mtu: int = 1500,
    framing: Framing = COUNTED,
) -> Ceiling:
    """How much payload of one size a link of `link_rate` bit/s carries in one direction."""
    predicted = predict(encapsulation, payload_bytes, transport, family, link_mtu)
    per_piece = predicted.bulk_bytes + framing.per_packet * predicted.bulk_packets
    if not encapsulation.stream:
        per_piece += sum(max(0, framing.minimum - packet.size) for packet in predicted.packets)
    pieces = link_rate / 8 / per_piece
    return Ceiling(pieces * payload_bytes * 8 / 1e6, pieces, pieces * predicted.bulk_packets)


def path_mtu(encapsulation: Encapsulation, family: Family, link_mtu: int = 1500) -> int:
    """The largest IP packet that hosts can send through the tunnel without it being fragmented first."""
    tunnel = _for_family(encapsulation, family)
    limit = min(link_mtu, tunnel.inner_mtu or link_mtu)
    if tunnel.inner_mtu_over is not None:
        limit = min(limit, tunnel.inner_mtu_over(link_mtu))
    if tunnel.stream or not tunnel.layers or _fragments_after(tunnel):
        return limit
    return _largest_packet(tunnel, family, limit, link_mtu)


def _inner_pieces(
    tunnel: Encapsulation, payload_bytes: int, transport: Transport, family: Family, link_mtu: int
) -> Iterator[tuple[Field, ...]]:
    """What the tunnel is handed for this payload, one after the other."""
    if tunnel.inner is Inner.STREAM:
        for size in _portions(payload_bytes, tunnel.chunk):
            yield (_payload(size),)
        return
    header = {"tcp": layers.tcp(), "udp": layers.udp(), "icmp": _ICMP}[transport]
    most = _segment_payload(tunnel, family, link_mtu) if transport == "tcp" else payload_bytes
    for size in _portions(payload_bytes, most):
        segment = fields_around([header], [_payload(size)])
        if tunnel.inner is Inner.SEGMENT:
            yield segment
            continue
        for packet in _ip_packets(layers.ip(family), segment, path_mtu(tunnel, family, link_mtu)):
            frame = fields_around([layers.ethernet()] if tunnel.inner is Inner.FRAME else [], packet)
            yield tuple(_inside(field) for field in frame) if tunnel.layers else frame


def _on_wire(tunnel: Encapsulation, packet: tuple[Field, ...], link_mtu: int) -> Iterator[Packet]:
    if _size(packet) <= link_mtu:
        yield _framed(packet)
        return
    outermost = tunnel.layers[0]
    header = len(outermost.before)
    for fragment in _ip_packets(outermost, packet[header:], link_mtu):
        yield _framed(fragment)


def _in_stream(
    tunnel: Encapsulation, payload_bytes: int, pieces: Sequence[tuple[Field, ...]], link_mtu: int
) -> Prediction:
    around_segment = size_around(tunnel.packet_layers, 0)
    most = link_mtu - around_segment
    if most <= 0:
        raise ValueError(f"an MTU of {link_mtu} bytes leaves no room for TCP")
    messages = list(_messages(tunnel, pieces))
    packets = [
        _framed(fields_around(tunnel.packet_layers, part))
        for message in messages
        for part in _cut(message, _portions(_size(message), most))
    ]
    wire_bytes = float(sum(packet.size for packet in packets))
    if not tunnel.fills_segments:
        return Prediction(payload_bytes, tuple(packets), wire_bytes, float(len(packets)))
    segments = _size_among_many(tunnel, pieces) / most
    bulk_bytes = segments * (most + around_segment + layers.ETHERNET_HEADER)
    return Prediction(payload_bytes, tuple(packets), bulk_bytes, segments)


def _messages(tunnel: Encapsulation, pieces: Sequence[tuple[Field, ...]]) -> Iterator[tuple[Field, ...]]:
    """What is written to the stream for pieces that come at once."""
    shared, own = _message_layers(tunnel)
    together: tuple[Field, ...] = ()
    for piece in pieces:
        part = fields_around(own, piece)
        if together and not (tunnel.gathered and _size(together) + _size(part) <= tunnel.chunk):
            yield fields_around(shared, together)
            together = ()
        together += part
    yield fields_around(shared, together)


def _size_among_many(tunnel: Encapsulation, pieces: Sequence[tuple[Field, ...]]) -> float:
    """Bytes of the stream for these pieces where there is always more to send."""
    shared, own = _message_layers(tunnel)
    parts = [size_around(own, _size(piece)) for piece in pieces]
    if tunnel.gathered:
        return sum(parts) * size_around(shared, tunnel.chunk) / tunnel.chunk
    return float(sum(size_around(shared, part) for part in parts))


def _message_layers(tunnel: Encapsulation) -> tuple[Sequence[Layer], Sequence[Layer]]:
    """The layers that messages sent at once share, and those that each has of its own."""
    border = len(tunnel.message_layers) - tunnel.gathered
    return tunnel.message_layers[:border], tunnel.message_layers[border:]


def _segment_payload(tunnel: Encapsulation, family: Family, link_mtu: int) -> int:
    """What one TCP segment of a host carries at most."""
    largest = path_mtu(tunnel, family, link_mtu)
    if tunnel.inner is Inner.SEGMENT and tunnel.layers:
        largest = _largest_packet(tunnel, family, largest, link_mtu)
    if tunnel.tcp_packet is not None:
        largest = min(largest, tunnel.tcp_packet)
    payload = largest - layers.ip(family).size(0) - layers.tcp().size(0)
    if payload <= 0:
        raise ValueError(f"an MTU of {link_mtu} bytes leaves no room for TCP within the tunnel")
    return payload


def _largest_packet(tunnel: Encapsulation, family: Family, limit: int, room: int) -> int:
    """The largest IP packet up to a limit whose encapsulation is at most `room` bytes."""
    smallest = layers.ip(family).size(0) + 8

    def outer(packet: int) -> int:
        inside = packet
        if tunnel.inner is Inner.FRAME:
            inside += layers.ETHERNET_HEADER
        if tunnel.inner is Inner.SEGMENT:
            inside -= layers.ip(family).size(0)
        return size_around(tunnel.layers, inside)

    fitting = bisect_right(range(smallest, limit + 1), room, key=outer)
    if fitting == 0:
        raise ValueError(f"{room} bytes leave no room for packets within the tunnel")
    return smallest + fitting - 1


def _for_family(tunnel: Encapsulation, family: Family) -> Encapsulation:
    """Where payload has the outer IP header alone, that is of the payload's family."""
    if tunnel.inner is not Inner.SEGMENT:
        return tunnel
    own_header = (layers.ip(family), *tunnel.layers[1:])
    return replace(tunnel, layers=own_header, oversize=Oversize.FRAGMENTED_AFTER)


def _fragments_after(tunnel: Encapsulation) -> bool:
    return tunnel.oversize is Oversize.FRAGMENTED_AFTER and tunnel.layers[0].family is not None


def _ip_packets(header: Layer, inside: tuple[Field, ...], mtu: int) -> Iterator[tuple[Field, ...]]:
    """One packet, or fragments as Linux makes them: all but the last a multiple of 8 bytes."""
    room = mtu - header.size(0)
    if _size(inside) <= room:
        yield fields_around([header], inside)
        return
    is_ipv6 = header.family is Family.IPV6
    extension = (_IPV6_FRAGMENT_HEADER,) if is_ipv6 else ()
    unit = (room - _size(extension)) // 8 * 8
    if unit <= 0:
        raise ValueError(f"an MTU of {mtu} bytes leaves no room for fragments")
    # Linux lets the last fragment of IPv4 fill the MTU, but not that of IPv6.
    sizes = _portions(_size(inside), unit, last=unit if is_ipv6 else room)
    for part in _cut(inside, sizes):
        yield fields_around([header], (*extension, *part))


def _portions(total: int, most: int, last: int = 0) -> list[int]:
    """Sizes that add up to the total, each the largest allowed, the last one perhaps larger."""
    sizes: list[int] = []
    while total > max(most, last):
        sizes.append(most)
        total -= most
    return [*sizes, total]


def _cut(fields: Iterable[Field], sizes: Iterable[int]) -> Iterator[tuple[Field, ...]]:
    """Consecutive parts of these sizes; a field on a border is in both parts."""
    rest = list(fields)
    for size in sizes:
        part: list[Field] = []
        while size:
            field = rest.pop(0)
            taken = min(size, field.size)
            part.append(Field(field.name, taken, field.kind))
            size -= taken
            if taken < field.size:
                rest.insert(0, Field(field.name, field.size - taken, field.kind))
        yield tuple(part)


def _framed(packet: Iterable[Field]) -> Packet:
    return Packet(fields_around([layers.ethernet()], packet))


def _inside(field: Field) -> Field:
    return field if field.kind is Kind.PAYLOAD else Field(f"inner {field.name}", field.size, field.kind)


def _payload(size: int) -> Field:
    return Field("payload", size, Kind.PAYLOAD)


def _size(fields: Iterable[Field]) -> int:
    return sum(field.size for field in fields)
