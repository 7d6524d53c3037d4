"""What formats alone say of a treatment's packets at a point."""

from __future__ import annotations

from tunnelbench.errors import UserError
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead.model import bulk_payload, predict
from tunnelbench.study.points import Point
from tunnelbench.study.quantity import MAXIMUM
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels.treatments import tunnel_of, variant_of


def encapsulation_of(treatment: Treatment) -> Encapsulation | None:
    """How a treatment wraps packets; None where that is not described."""
    return tunnel_of(treatment).encapsulation(variant_of(treatment))


def payload_per_packet(treatment: Treatment, point: Point) -> float | None:
    """Bytes of payload in one packet on the wire where there is always more to send.

    None where it has no one size, or where today's tunnels don't know the treatment.
    """
    try:
        encapsulation = encapsulation_of(treatment)
        if encapsulation is None or not _is_predictable(point, encapsulation):
            return None
        if point.transport == "tcp":
            return float(bulk_payload(encapsulation, Family(point.ip), treatment.mtu))
        datagram = predict(encapsulation, point.payload_bytes or 1, "udp", Family(point.ip), treatment.mtu)
    except (KeyError, UserError, ValueError):
        return None
    return datagram.payload_bytes / datagram.bulk_packets


def predicted_overhead(encapsulation: Encapsulation, point: Point, mtu: int) -> float | None:
    """Bytes on the wire per byte of payload; None where that can't be told."""
    if not _is_predictable(point, encapsulation):
        return None
    family = Family(point.ip)
    try:
        if point.transport == "tcp":
            segment = bulk_payload(encapsulation, family, mtu)
            return predict(encapsulation, segment, "tcp", family, mtu).bulk_ratio
        datagram = predict(encapsulation, point.payload_bytes or 1, "udp", family, mtu)
    except ValueError:
        return None
    return datagram.bulk_ratio if point.rate == MAXIMUM else datagram.ratio


def _is_predictable(point: Point, encapsulation: Encapsulation) -> bool:
    return (
        point.transport != "icmp"
        and point.profile == "constant"
        and bool(point.payload_bytes)
        and point.direction in ("forward", "reverse")
        and not encapsulation.compresses
    )
