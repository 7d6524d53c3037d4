"""The overhead that a tunnel's formats predict, beside the one that a trial measured."""

from __future__ import annotations

from dataclasses import replace

from tunnelbench.lab.topology import Family, Topology
from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead.model import PLAIN, largest_unfragmented_payload
from tunnelbench.store.model import TrialRecord, WarningRecord
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels.predictions import encapsulation_of, predicted_overhead

METRIC = "wire_overhead_predicted"
_LARGEST_DIFFERENCE = 0.02
"""Of what is predicted, before it is doubted."""
_OWN_BYTES = 10_000
"""What tunnels and hosts may send by themselves in a trial: keepalives, new keys, neighbour discovery."""
_IPSEC = ("ESP", "AH")
"""Layers right around what IPsec protects."""


def with_prediction(trial: TrialRecord, treatment: Treatment, topology: Topology) -> TrialRecord:
    """The trial with the predicted overhead among its metrics, and a warning where it is far from that.

    Nothing is predicted of traffic whose packets have no one size or go both ways, nor of datagrams that
    IPsec cuts up on the host that sends them.
    """
    measured = trial.metrics.get("wire_overhead")
    encapsulation = encapsulation_of(treatment)
    if measured is None or encapsulation is None:
        return trial
    predicted = predicted_overhead(encapsulation, trial.point, treatment.mtu)
    if predicted is None or _is_cut_by_sender(trial.point, encapsulation, treatment.mtu, topology):
        return trial
    known = replace(trial, metrics={**trial.metrics, METRIC: predicted})
    if not _is_comparable(trial, encapsulation, treatment.mtu):
        return known
    difference = abs(measured - predicted)
    unexplained = difference * trial.metrics.get("throughput", 0.0) * 1e6 / 8 * trial.seconds
    if difference <= _LARGEST_DIFFERENCE * predicted or unexplained <= _OWN_BYTES:
        return known
    warning = WarningRecord(
        "unexpected-overhead",
        f"{measured:.4g} bytes on the wire per byte of payload, where the tunnel's formats "
        f"make {predicted:.4g}",
        "Look at single packets: there was other traffic, or the tunnel is not what it is described as.",
    )
    return replace(known, warnings=[*trial.warnings, warning])


def _is_comparable(trial: TrialRecord, encapsulation: Encapsulation, mtu: int) -> bool:
    """Whether all that was sent arrived, once, in packets whose borders are known."""
    point = trial.point
    if encapsulation.stream or encapsulation.varying:
        return False
    if point.transport == "tcp":
        return trial.metrics.get("retransmits") == 0
    if trial.metrics.get("loss") != 0:
        return False
    # Over IPv4 only a datagram that fits the link tells a host that the tunnel takes less.
    family = Family(point.ip)
    whole = largest_unfragmented_payload(PLAIN, "udp", family, mtu)
    return family is Family.IPV6 or (point.payload_bytes or 0) <= whole


def _is_cut_by_sender(point: Point, encapsulation: Encapsulation, mtu: int, topology: Topology) -> bool:
    """Whether the host that sends a datagram applies IPsec to it itself, and the tunnel has to cut it up.

    Linux encapsulates it whole there and fragments it then, where a gateway gets pieces that fit. That is so
    for datagrams of IPv4; over IPv6, the host learns what fits.
    """
    sender = topology.server if point.direction == "reverse" else topology.clients[0]
    innermost = encapsulation.layers[-1].name if encapsulation.layers else None
    if not sender.is_one_node or innermost not in _IPSEC or point.transport != "udp" or point.ip != "ipv4":
        return False
    return (point.payload_bytes or 0) > largest_unfragmented_payload(encapsulation, "udp", Family.IPV4, mtu)
