"""The overhead that a tunnel's formats predict, beside the one that a trial measured."""

from __future__ import annotations

from dataclasses import replace

from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead.model import PLAIN, largest_unfragmented_payload
from tunnelbench.store.model import TrialRecord, WarningRecord
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels.predictions import encapsulation_of, predicted_overhead

METRIC = "wire_overhead_predicted"
_LARGEST_DIFFERENCE = 0.02
"""Of what is predicted, before it is doubted."""
_OWN_BYTES = 10_000
"""What tunnels and hosts may send by themselves in a trial: keepalives, new keys, neighbour discovery."""


def with_prediction(trial: TrialRecord, treatment: Treatment) -> TrialRecord:
    """The trial with the predicted overhead among its metrics, and a warning where it is far from that.

    Nothing is predicted of traffic whose packets have no one size or go both ways.
    """
    measured = trial.metrics.get("wire_overhead")
    encapsulation = encapsulation_of(treatment)
    if measured is None or encapsulation is None:
        return trial
    predicted = predicted_overhead(encapsulation, trial.point, treatment.mtu)
    if predicted is None:
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
