"""What a campaign writes down: one frozen record per row, checked when it is made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from tunnelbench.load.base import LogEnd
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment

CampaignState = Literal["running", "interrupted", "finished"]
InstanceEnd = Literal["proven", "refused", "failed", "skipped"]
TrialStatus = Literal["ok", "void"]
Moment = Literal["before", "during", "after"]
"""Before a campaign, during a trial, after a campaign."""


@dataclass(frozen=True)
class Versions:
    """What was measured on what: everything a reader needs to judge or repeat a campaign."""

    product: str
    """Version of tunnelbench."""
    kernel: str
    """Release of the kernel that this machine runs."""
    processor: str
    """Model name of the processor."""
    machine: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further facts by name: processors, memory, virtualisation, frequency governor."""
    images: Mapping[str, str] = field(default_factory=dict[str, str])
    """Image name to the identity of its build."""
    programs: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    """Image name to the versions of its programs and of its kernel."""


@dataclass(frozen=True)
class CampaignRecord:
    """The one campaign of a file."""

    id: str
    study_id: str
    study_title: str
    study_question: str
    study_toml: str
    """The text of the study as it was read, so that the campaign can be repeated from its file alone."""
    seed: int
    """Seed of the order of rounds; 64 bits, signed."""
    plan: Mapping[str, object]
    """Settings of the plan by name (rounds, seconds, budget, stop rule); whatever JSON can hold."""
    versions: Versions
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    state: CampaignState = "running"
    why: str | None = None
    """Why the campaign ended, where it has."""


@dataclass(frozen=True)
class InstanceRecord:
    """One bring-up of a treatment: where it stands in the plan and where its gateways run."""

    campaign_round: int
    position: int
    """Place in the round's order, from 0."""
    treatment: Treatment
    runtime: str | None
    """`namespace` or `kernel`; None for a treatment that no runtime here can carry."""
    runtime_reason: str | None = None
    """Why this runtime was chosen."""


@dataclass(frozen=True)
class WarningRecord:
    """A doubt about a number, and what to do about it."""

    kind: str
    message: str
    advice: str


@dataclass(frozen=True)
class RekeyRecord:
    """What forced new keys cost traffic, beside the same traffic without them."""

    seconds: float
    """Until both ends used the new keys."""
    loss: float
    """Ratio of datagrams lost."""
    calm_loss: float
    gap_ms: float
    """The longest time without an arrival."""
    calm_gap_ms: float
    latency_ms: float
    """The largest one-way delay."""
    calm_latency_ms: float


@dataclass(frozen=True)
class PacketLogRecord:
    """A file with every packet of a trial, as one end saw it."""

    written_by: LogEnd
    file: str
    """Its name in the directory `PACKETS_NAME` beside the campaign's file."""
    bytes: int
    """Its size."""


@dataclass(frozen=True)
class CalibrationRecord:
    """What a load generator did between two hosts with nothing between them."""

    host_os: str
    """The image of the two hosts, or those of host1 and host2, as a treatment has them."""
    mtu: int
    """Bytes."""
    point: Point
    metrics: Mapping[str, float]
    reason: str | None = None
    """Why there are no metrics, where there are none."""


@dataclass(frozen=True)
class CryptographyRecord:
    """What the cipher and the integrity check of a tunnel take alone, on a node like its gateways."""

    treatment: Treatment
    runtime: str
    encryption: str
    integrity: str
    implementation: str
    """Such as `Linux 6.1.176` or `OpenSSL 3.0.17`; where the gateways run an image each, that of the slower,
    with the image's name."""
    ns_per_packet: float | None
    ns_per_byte: float | None
    reason: str | None = None
    """Why there are no times, where there are none."""


@dataclass(frozen=True)
class SettledRecord:
    """A cell that is not measured any more, because enough is known of it."""

    campaign_round: int
    """The first round without it."""
    instance: str
    """Key of its treatment in its runtime."""
    point: str
    """Key of its point."""
    name: str
    """In words."""
    instances: int
    """How many had been measured."""
    half_width: float
    """Half of the 95 % interval of the ratio to plain IP, by that ratio."""


@dataclass(frozen=True)
class WarmUpRecord:
    """What a pilot found out about the start of a cell's trials."""

    instance: str
    """Key of its treatment in its runtime."""
    point: str
    """Key of its point."""
    name: str
    """In words."""
    seconds: float
    """To be cut off."""
    series: str | None
    """What was looked at; None where the load has no series, so that the usual time is cut off."""
    is_settled: bool
    """False where the series was still changing in its second half."""


@dataclass(frozen=True)
class MachineStateRecord:
    """What this machine did besides the campaign for a while."""

    moment: Moment
    seconds: float
    """How long that was."""
    processors: int
    others: float
    """Processor seconds per second of processes that are neither the campaign's nor the kernel's."""
    stolen: float
    """Processor seconds per second that the hypervisor gave to other machines."""
    frequency_mhz: float | None
    """Mean clock rate of the processors; None where the machine doesn't say."""
    temperature_c: float | None
    """Of the hottest sensor, degrees Celsius; None where none is visible."""
    clock_step_ms: float
    """By how much the clock of the day was set or slewed."""
    clock_source: str | None
    """What the kernel takes its time from."""


@dataclass(frozen=True)
class TrialRecord:
    """One stretch of measured traffic inside an instance.

    An `ok` trial has metrics; a `void` one has a reason and no metrics, so that a trial that went wrong can
    never pass for a low number. Raises ValueError where that doesn't hold, or where a value isn't finite.
    """

    position: int
    """Place in the instance's order, from 0."""
    point: Point
    started: datetime
    seconds: float
    """Length of the measured window."""
    status: TrialStatus = "ok"
    reason: str | None = None
    metrics: Mapping[str, float] = field(default_factory=dict[str, float])
    node_costs: Mapping[str, Mapping[str, float]] = field(default_factory=dict[str, Mapping[str, float]])
    """Node to field (`user`, `system`, `softirq`, `total`) to processor seconds per second."""
    series: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    """Name to samples at equal distances in time."""
    histograms: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """Name to an HDR histogram in its own compact encoding."""
    warnings: Sequence[WarningRecord] = ()
    packet_logs: Sequence[PacketLogRecord] = ()
    machine: MachineStateRecord | None = None
    """What else the machine did meanwhile."""

    def __post_init__(self) -> None:
        if self.status == "ok" and not self.metrics:
            raise ValueError("a trial that is ok needs metrics")
        if self.status == "void" and (self.metrics or self.node_costs or self.packet_logs):
            raise ValueError("a void trial has no numbers")
        if self.status == "void" and not self.reason:
            raise ValueError("a void trial needs a reason")
        if self.started.tzinfo is None:
            raise ValueError("the start of a trial needs a time zone")
        values = [
            *self.metrics.values(),
            *(value for cost in self.node_costs.values() for value in cost.values()),
        ]
        if not all(map(math.isfinite, [*values, self.seconds])):
            raise ValueError(f"values must be finite: {self.metrics}, {self.node_costs}, {self.seconds} s")
