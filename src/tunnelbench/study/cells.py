"""The expansion of a study into cells: every combination of levels that it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Literal

from tunnelbench.study.catalogue import BASELINE_VPN, Catalogue, InternetProtocol, Transport, Vpn
from tunnelbench.study.model import Direction, Factors, Frozen, Study

PointRate = int | Literal["max"] | None

_SMALLEST_IPV6_MTU = 1280
"""Bytes; RFC 8200, section 5."""


class Treatment(Frozen, frozen=True):
    """The levels that are hard to change: one bring-up of a treatment is an instance."""

    vpn: str
    suite: str
    image: str
    mtu: int
    """Bytes."""

    @property
    def tunnel(self) -> str:
        """`VPN/SUITE`, or the VPN alone where it doesn't encrypt."""
        return self.vpn if self.suite == "none" else f"{self.vpn}/{self.suite}"

    @property
    def key(self) -> str:
        """Stable name, different for every treatment."""
        return f"{self.vpn}/{self.suite} image={self.image} mtu={self.mtu}"

    @property
    def is_baseline(self) -> bool:
        """Whether this is plain IP."""
        return self.vpn == BASELINE_VPN

    @property
    def baseline(self) -> Treatment:
        """Plain IP on the same image with the same MTU: what this treatment is related to."""
        return Treatment(vpn=BASELINE_VPN, suite="none", image=self.image, mtu=self.mtu)


class Point(Frozen, frozen=True):
    """The levels that are easy to change: they vary inside an instance."""

    transport: Transport
    ip: InternetProtocol
    payload_bytes: int
    """Payload of a datagram, or size of a TCP write."""
    rate: PointRate
    """UDP: payload bits per second, or as fast as possible. None for TCP."""
    direction: Direction
    load: str

    @property
    def key(self) -> str:
        """Stable name, different for every point."""
        rate = "" if self.rate is None else f" rate={self.rate}"
        return f"{self.transport} {self.ip} payload={self.payload_bytes}{rate} {self.direction} {self.load}"


class Cell(Frozen, frozen=True):
    """One combination of levels, and why it can't be measured where it can't."""

    treatment: Treatment
    point: Point
    skipped: str | None = None
    """The reason, or None where the cell is to be measured."""

    @property
    def key(self) -> str:
        """Stable name, different for every cell of a study."""
        return f"{self.treatment.key} {self.point.key}"


def expand(study: Study, catalogue: Catalogue) -> tuple[Cell, ...]:
    """Every cell of a study in the order of its levels, each once.

    The plain-IP baseline comes first where the study doesn't list it. Combinations that a VPN can't carry are
    cells with a reason. Raises UserError for a VPN, suite or load that the catalogue doesn't have.
    """
    factors = study.factors
    for load in factors.load:
        catalogue.check_load(load)
    points = tuple(dict.fromkeys(_points(factors)))
    return tuple(
        Cell(
            treatment=treatment,
            point=point,
            skipped=_reason_to_skip(catalogue.vpns[treatment.vpn], treatment, point),
        )
        for treatment in _treatments(factors, catalogue)
        for point in points
    )


def _treatments(factors: Factors, catalogue: Catalogue) -> Iterator[Treatment]:
    named = [tunnel for pattern in factors.tunnel for tunnel in catalogue.tunnels(pattern)]
    if all(vpn != BASELINE_VPN for vpn, _ in named):
        named = [*catalogue.tunnels(BASELINE_VPN), *named]
    for (vpn, suite), image, mtu in product(dict.fromkeys(named), factors.image, factors.mtu):
        yield Treatment(vpn=vpn, suite=suite, image=image, mtu=mtu)


def _points(factors: Factors) -> Iterator[Point]:
    for transport, ip in product(factors.transport, factors.ip):
        for payload_bytes, rate in _sizes_and_rates(factors, transport):
            for direction, load in product(factors.direction, factors.load):
                yield Point(
                    transport=transport,
                    ip=ip,
                    payload_bytes=payload_bytes,
                    rate=rate,
                    direction=direction,
                    load=load,
                )


def _sizes_and_rates(factors: Factors, transport: Transport) -> Iterator[tuple[int, PointRate]]:
    if transport == "tcp":
        for payload_bytes in factors.payload_bytes.tcp:
            yield payload_bytes, None
        return
    for payload_bytes, rate in product(factors.payload_bytes.udp, factors.rate):
        yield payload_bytes, rate.bits_per_second(payload_bytes)


def _reason_to_skip(vpn: Vpn, treatment: Treatment, point: Point) -> str | None:
    if (point.transport, point.ip) not in vpn.carries:
        return f"{vpn.title} doesn't carry {point.transport.upper()} over {_WRITTEN_IP[point.ip]}"
    if point.ip == "ipv6" and treatment.mtu < _SMALLEST_IPV6_MTU:
        return f"IPv6 needs an MTU of at least {_SMALLEST_IPV6_MTU} bytes (RFC 8200), not {treatment.mtu}"
    return None


_WRITTEN_IP: dict[InternetProtocol, str] = {"ipv4": "IPv4", "ipv6": "IPv6"}
