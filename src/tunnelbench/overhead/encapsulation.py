"""How a tunnel wraps what it carries: fields, layers made of fields, and an encapsulation made of layers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from tunnelbench.lab.topology import Family


class Kind(StrEnum):
    """What a field is for; a picture has one colour for each."""

    LINK = "link"
    NETWORK = "network"
    TRANSPORT = "transport"
    TUNNEL = "tunnel"
    INITIALISATION_VECTOR = "initialisation vector"
    PADDING = "padding"
    INTEGRITY = "integrity"
    PAYLOAD = "payload"


@dataclass(frozen=True)
class Field:
    """A stretch of a packet."""

    name: str
    size: int
    """In bytes."""
    kind: Kind


@dataclass(frozen=True)
class Padding:
    """What is added so that enclosed bytes fill whole blocks."""

    block: int
    """Padded to a multiple of this many bytes."""
    counted: int = 0
    """Bytes of the layer's own that are in the blocks, beside what it encloses and the padding."""
    minimum: int = 0
    """At least this many bytes of padding."""
    limit: int | None = None
    """No padding beyond this many bytes of what is enclosed and its padding; None for no limit."""

    def size(self, inner: int) -> int:
        """How many bytes are added to this many enclosed ones."""
        padding = self.minimum + -(inner + self.counted + self.minimum) % self.block
        if self.limit is None:
            return padding
        return max(0, min(padding, self.limit - inner))


@dataclass(frozen=True)
class Layer:
    """One wrapping: what is put before and after the bytes that it encloses."""

    name: str
    reference: str
    """Where its format is defined, such as `RFC 4303`."""
    before: tuple[Field, ...] = ()
    padding: Padding | None = None
    """Put after the enclosed bytes, before the fields of `after`."""
    after: tuple[Field, ...] = ()
    family: Family | None = None
    """Its version where this is an IP header: then what is too large can be fragmented here."""
    is_stream: bool = False
    """What it encloses are bytes of a stream, without borders of messages (TCP)."""

    def around(self, inner: int) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
        """The fields before and after this many enclosed bytes; none of them is empty."""
        padding = self.padding.size(inner) if self.padding else 0
        filled = (Field("padding", padding, Kind.PADDING), *self.after)
        return _present(self.before), _present(filled)

    def size(self, inner: int) -> int:
        """Bytes of the whole, with this many enclosed ones."""
        padding = self.padding.size(inner) if self.padding else 0
        return sum(field.size for field in (*self.before, *self.after)) + inner + padding


class Inner(StrEnum):
    """What a tunnel carries."""

    PACKET = "IP packet"
    FRAME = "Ethernet frame"
    """A packet with an Ethernet header, without a frame check sequence."""
    SEGMENT = "payload of an IP packet"
    """What follows the IP header, as in IPsec's transport mode: the IP header is the outer one, too."""
    STREAM = "byte stream"
    """The bytes of a TCP connection that ends at the gateway."""


class Oversize(StrEnum):
    """What happens to a datagram whose encapsulation does not fit the wire."""

    FRAGMENTED_BEFORE = "fragmented before encapsulation"
    """The tunnel's path has a lower MTU, so that each fragment's encapsulation fits."""
    FRAGMENTED_AFTER = "fragmented after encapsulation"
    """It is encapsulated whole; the outer IP header is what is fragmented."""


@dataclass(frozen=True)
class Encapsulation:
    """What a tunnel makes of what it carries, and how large that may be."""

    layers: tuple[Layer, ...] = ()
    """Outermost first, beginning below the wire's Ethernet header, which is not among them."""
    inner: Inner = Inner.PACKET
    inner_mtu: int | None = None
    """The largest IP packet that the tunnel's interface takes; None where only the wire limits it."""
    inner_mtu_over: Callable[[int], int] | None = None
    """The same by the wire's MTU, where the programs work it out from that by a rule of their own."""
    oversize: Oversize = Oversize.FRAGMENTED_BEFORE
    tcp_packet: int | None = None
    """TCP inside is told to send IP packets no larger than this (OpenVPN's `mssfix`); None where only the
    path's MTU limits them."""
    chunk: int = 32_768
    """How many bytes of a byte stream one message carries at most."""
    gathered: int = 0
    """Pieces that come at once travel in one message of a stream: each has so many of the innermost layers of
    its own, and the others are around as many of them as fit a chunk."""
    fills_segments: bool = False
    """Where there is always more to send, messages fill TCP's segments. Otherwise each is handed to TCP by
    itself, and its last segment leaves without waiting for the next message."""
    varying: int = 0
    """A packet may be longer by this much than the layers say: a field that only some packets have, such as
    PPTP's acknowledgement, which may also travel in packets of its own."""
    compresses: bool = False
    """Payload that can be compressed gets smaller than is predicted here."""

    @property
    def stream(self) -> bool:
        """Whether messages travel in a TCP stream, so that packets on the wire don't show their borders."""
        return any(layer.is_stream for layer in self.layers)

    @property
    def packet_layers(self) -> tuple[Layer, ...]:
        """The layers that each packet on the wire has: for a stream, those as far as TCP."""
        depths = [depth for depth, layer in enumerate(self.layers, 1) if layer.is_stream]
        return self.layers[: depths[0]] if depths else self.layers

    @property
    def message_layers(self) -> tuple[Layer, ...]:
        """For a stream, the layers that a message in it has; none otherwise."""
        return self.layers[len(self.packet_layers) :] if self.stream else ()


def size_around(layers: Iterable[Layer], inner: int) -> int:
    """Bytes of a packet with all these layers, the outermost first, around this many bytes."""
    size = inner
    for layer in reversed(tuple(layers)):
        size = layer.size(size)
    return size


def fields_around(layers: Iterable[Layer], inner: Iterable[Field]) -> tuple[Field, ...]:
    """The fields of a packet with all these layers, the outermost first, around those of its inside."""
    fields = tuple(inner)
    for layer in reversed(tuple(layers)):
        before, after = layer.around(sum(field.size for field in fields))
        fields = before + fields + after
    return fields


def _present(fields: Iterable[Field]) -> tuple[Field, ...]:
    return tuple(field for field in fields if field.size)
