"""Why a tunnel is as fast as it is: ceilings from the link's rate down to what arrived.

Each ceiling is the throughput that would be reached if nothing below it cost anything. They follow the
utilisation law (E. D. Lazowska and others, Quantitative System Performance, 1984, section 3.3): a resource
that is busy for a share u while payload arrives at rate T carries at most T / u of it. The lowest such bound
belongs to the bottleneck. What is still missing below it was waited for, and nothing measured explains it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

LARGEST_UNEXPLAINED = 0.15
"""Share of the lowest ceiling that may stay unexplained before it is said."""
SATURATED = 1 - LARGEST_UNEXPLAINED
"""Share of its time that a resource is busy when it is called the bottleneck."""

_NS_PER_BYTE = 8e3
"""Nanoseconds for each byte at 1 Mbit/s."""


@dataclass(frozen=True)
class Costs:
    """What was measured of one tunnel at one point, in one runtime."""

    throughput: float
    """Mbit/s of payload that arrived."""
    processors: Mapping[str, float]
    """Node to processor seconds per second."""
    machine: float | None = None
    """Processor seconds per second of the whole machine, everything else that ran included."""
    n_processors: int | None = None
    """Processors of the machine."""
    wire_overhead: float | None = None
    """Measured bytes on the wire per byte of payload."""
    wire_predicted: float | None = None
    """The same from the formats alone."""
    payload_per_packet: float | None = None
    """Bytes of payload in one packet of the tunnel, where there is always more to send."""
    switches: Mapping[str, float] = field(default_factory=dict[str, float])
    """Node to context switches of its threads, per second."""
    queued: Mapping[str, float] = field(default_factory=dict[str, float])
    """Node to seconds per second that its threads were ready and had no processor."""
    system_calls: Mapping[str, float] = field(default_factory=dict[str, float])
    """Node to system calls of its programs for each packet on the wire."""


@dataclass(frozen=True)
class Cipher:
    """What the cryptography of a tunnel takes alone."""

    ns_per_packet: float
    ns_per_byte: float
    is_accounted: bool = True
    """Whether its time is part of what a node's processes took, and not of a kernel that nodes share."""


@dataclass(frozen=True)
class Hop:
    """A hop of Wi-Fi that all payload crosses before any tunnel takes it."""

    rate: float
    """Mbit/s of 802.11's frames that its channel carries, of both directions together."""
    bytes_per_byte: float | None = None
    """Bytes of frames on the channel per byte of payload that plain IP carries, those of the other direction
    left out; None where that isn't known. Tunnels may need more: their packets are smaller."""


@dataclass(frozen=True)
class Ceiling:
    """What a part leaves of the ceiling above it."""

    part: str
    """`link`, `headers`, `Wi-Fi`, `Wi-Fi frames`, `tunnel headers`, `plain IP`, `cipher`, `tunnel's work`,
    `run queue`, `sharing`."""
    mbit_per_second: float
    """Payload; never below what arrived."""


@dataclass(frozen=True)
class Explanation:
    """Where a tunnel's throughput went."""

    throughput: float
    """Mbit/s of payload that arrived."""
    ceilings: tuple[Ceiling, ...]
    """From the highest to the lowest; empty where nothing bounds the throughput from above."""
    busiest: str | None
    """The gateway (or host, where there is none) that computes most."""
    busiest_share: float | None
    """Of one processor."""
    busiest_queued: float | None
    """Seconds per second that the busiest node's threads waited for a processor."""
    machine_share: float | None
    """Of all processors of the machine, other work included."""
    bottleneck: str | None
    """`link`, `Wi-Fi`, `machine` or the node that is busy for at least SATURATED of its time; None if none
    is."""
    ns_per_byte: Mapping[str, float]
    """Node to processor nanoseconds per byte of payload."""
    cipher_ns_per_byte: float | None
    """What the cryptography alone takes, at each end, as it was timed before the campaign."""
    is_cipher_doubtful: bool
    """Whether that is more than all the time that the node took: then one of the two was disturbed, and the
    ceiling takes the node's."""
    plain_ns_per_byte: float | None
    """What plain IP takes of the busiest node."""
    switches_per_packet: Mapping[str, float]
    """Node to context switches for each packet of the tunnel; nodes without a count are missing."""
    system_calls_per_packet: Mapping[str, float]
    """Node to system calls of its programs for each packet on the wire; nodes without a count are missing."""
    wire_overhead: float | None
    wire_predicted: float | None

    @property
    def asleep(self) -> float | None:
        """The share of time in which the busiest node neither ran nor waited for a processor.

        Its programs waited for packets then. None where that isn't known; 0 for several threads at least as
        busy as one.
        """
        if self.busiest_share is None or self.busiest_queued is None:
            return None
        return max(0.0, 1 - self.busiest_share - self.busiest_queued)

    @property
    def lowest(self) -> float | None:
        """The lowest ceiling, Mbit/s."""
        return self.ceilings[-1].mbit_per_second if self.ceilings else None

    @property
    def unexplained(self) -> float | None:
        """The share of the lowest ceiling that did not arrive and that no part accounts for."""
        return None if self.lowest is None else 1 - self.throughput / self.lowest

    @property
    def is_explained(self) -> bool:
        """Whether the parts come within LARGEST_UNEXPLAINED of what was measured."""
        return self.unexplained is not None and self.unexplained <= LARGEST_UNEXPLAINED


def explain(
    costs: Costs,
    computing: tuple[str, ...],
    plain: Costs | None = None,
    cipher: Cipher | None = None,
    link_rate: float | None = None,
    hop: Hop | None = None,
) -> Explanation:
    """Explain one tunnel's throughput.

    `computing`: the nodes that may do the tunnel's work, each with one processor for it. `plain`: plain IP at
    the same point in the same runtime. `link_rate`: Mbit/s of a shaped link, None for one without a limit.
    `hop`: the hop of Wi-Fi, where there is one.
    Raises ValueError for a throughput that isn't above zero.
    """
    if costs.throughput <= 0:
        raise ValueError("nothing arrived, so there is nothing to explain")
    busiest = max(computing, key=lambda node: costs.processors.get(node, 0.0), default=None)
    share = costs.processors.get(busiest) if busiest else None
    machine = costs.machine / costs.n_processors if costs.machine and costs.n_processors else None
    per_byte = {node: used * _NS_PER_BYTE / costs.throughput for node, used in costs.processors.items()}
    timed = _cipher_time(costs, cipher)
    most = per_byte.get(busiest) if busiest and cipher and cipher.is_accounted else None
    believed = timed if timed is None or not most else min(timed, most)
    parts = _Parts(costs, plain, believed, link_rate, hop, busiest, share, machine)
    return Explanation(
        throughput=costs.throughput,
        ceilings=tuple(_falling(parts.ceilings(), costs.throughput)),
        busiest=busiest if share is not None else None,
        busiest_share=share,
        busiest_queued=parts.queued,
        machine_share=machine,
        bottleneck=parts.bottleneck(),
        ns_per_byte=per_byte,
        cipher_ns_per_byte=timed,
        is_cipher_doubtful=timed is not None and believed is not None and timed > believed,
        plain_ns_per_byte=parts.plain_work(),
        switches_per_packet=_switches_per_packet(costs),
        system_calls_per_packet=costs.system_calls,
        wire_overhead=costs.wire_overhead,
        wire_predicted=costs.wire_predicted,
    )


@dataclass(frozen=True)
class _Parts:
    costs: Costs
    plain: Costs | None
    cipher: float | None
    link_rate: float | None
    hop: Hop | None
    busiest: str | None
    share: float | None
    machine: float | None

    @property
    def queued(self) -> float | None:
        """How long the busiest node waited for a processor, seconds per second."""
        return self.costs.queued.get(self.busiest) if self.busiest else None

    def ceilings(self) -> Iterator[Ceiling]:
        """Each by itself; a later one may be above an earlier one."""
        if self.link_rate is not None:
            yield Ceiling("link", self.link_rate)
            if self.plain is not None and self.plain.wire_overhead:
                yield Ceiling("headers", self.link_rate / self.plain.wire_overhead)
        if self.hop is not None:
            yield Ceiling("Wi-Fi", self.hop.rate)
            if self.hop.bytes_per_byte is not None:
                yield Ceiling("Wi-Fi frames", self.hop.rate / self.hop.bytes_per_byte)
        if self.link_rate is not None and self.costs.wire_overhead:
            yield Ceiling("tunnel headers", self.link_rate / self.costs.wire_overhead)
        if self.plain is not None:
            yield Ceiling("plain IP", self.plain.throughput)
        if self.cipher:
            yield Ceiling("cipher", _NS_PER_BYTE / self._with_plain_work(self.cipher))
        if self.share:
            yield Ceiling("tunnel's work", self.costs.throughput / self.share)
            if self.queued is not None:
                # With more threads than one, several wait at the same time: no more than all of it is lost.
                yield Ceiling("run queue", self.costs.throughput / min(1.0, self.share + self.queued))
        if self.machine:
            yield Ceiling("sharing", self.costs.throughput / self.machine)

    def _with_plain_work(self, cipher: float) -> float:
        """Both on one processor, but not more than the node took in all."""
        both = cipher + (self.plain_work() or 0.0)
        return (
            both
            if not self.share
            else max(cipher, min(both, self.share * _NS_PER_BYTE / self.costs.throughput))
        )

    def plain_work(self) -> float | None:
        """Nanoseconds per byte that plain IP takes of the busiest node."""
        if self.plain is None or self.busiest is None or self.busiest not in self.plain.processors:
            return None
        return self.plain.processors[self.busiest] * _NS_PER_BYTE / self.plain.throughput

    def bottleneck(self) -> str | None:
        """What is busy nearly all the time; the most specific first."""
        if self.share is not None and self.share >= SATURATED:
            return self.busiest
        if self.link_rate is not None and self.costs.wire_overhead is not None:
            used = self.costs.throughput * self.costs.wire_overhead / self.link_rate
            if used >= SATURATED:
                return "link"
        if self.hop is not None and self.hop.bytes_per_byte is not None:
            used = self.costs.throughput * self.hop.bytes_per_byte / self.hop.rate
            if used >= SATURATED:
                return "Wi-Fi"
        return "machine" if self.machine is not None and self.machine >= SATURATED else None


def _falling(ceilings: Iterator[Ceiling], throughput: float) -> Iterator[Ceiling]:
    """Each at most the one before it, and none below what arrived."""
    above = float("inf")
    for ceiling in ceilings:
        above = max(min(above, ceiling.mbit_per_second), throughput)
        yield Ceiling(ceiling.part, above)


def _cipher_time(costs: Costs, cipher: Cipher | None) -> float | None:
    """Nanoseconds per byte of payload, all bytes on the wire taken to be encrypted."""
    if cipher is None:
        return None
    per_packet = cipher.ns_per_packet / costs.payload_per_packet if costs.payload_per_packet else 0.0
    return per_packet + cipher.ns_per_byte * (costs.wire_overhead or 1.0)


def _switches_per_packet(costs: Costs) -> dict[str, float]:
    if not costs.payload_per_packet:
        return {}
    packets = costs.throughput * 1e6 / 8 / costs.payload_per_packet
    return {node: switches / packets for node, switches in costs.switches.items()}
