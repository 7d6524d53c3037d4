"""What a report says, before it is laid out: the same content for the page, the terminal and JSON."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import polars

from tunnelbench.analysis.disturbance import MachineSummary
from tunnelbench.analysis.effects import Effects
from tunnelbench.analysis.findings.questions import Answer
from tunnelbench.analysis.findings.verdict import Beside, Verdict
from tunnelbench.analysis.ranked import RANKED_BY
from tunnelbench.analysis.wall_time import WallTime
from tunnelbench.analysis.why import Explanation
from tunnelbench.store.model import (
    CalibrationRecord,
    CampaignRecord,
    RekeyRecord,
    SettledRecord,
    WarmUpRecord,
)
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.witness.evidence import Evidence

CLIENTS = "clients"
"""Stands among the nodes for all clients of a gateway together."""
NODES: tuple[str, ...] = ("host1", CLIENTS, "gw1", "gw", "gw2", "host2", "host")
"""Those of every topology that traffic passes, in the order in which it goes forward through them."""
GATEWAYS = ("gw1", "gw2", "gw")
MACHINE = "machine"
"""Stands among the nodes for the whole machine that runs them, and for all else that runs there."""
_CLIENT = re.compile(r"client\d+")

OUTCOMES = {
    "proven": "proven and measured",
    "refused": "refused by the witness",
    "failed": "failed to come up",
    "void": "void, because something broke while measuring",
    "skipped": "skipped",
    "unfinished": "not reached",
}
"""How a cell can come out, and the words for it."""


@dataclass(frozen=True)
class Estimate:
    """A metric of one cell over its instances, as `analysis` summarises it; see there for the method."""

    n_instances: int
    n_trials: int
    median: float
    mean: float
    standard_deviation: float | None
    coefficient_of_variation: float | None
    low: float | None
    """Lower end of the 95 % interval of the median; None where there are too few instances."""
    high: float | None
    ratio: float | None
    """To plain IP in the same round and runtime; None where that wasn't measured, or says nothing."""
    ratio_low: float | None
    ratio_high: float | None


@dataclass(frozen=True)
class Added:
    """What a background adds to the metric that answers, as `analysis.loading` has it."""

    n: int
    """Instances."""
    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Proof:
    """What the witness says of all instances of one treatment in one runtime."""

    proven: int
    instances: int
    evidence: Evidence | None
    """Of the latest instance at which the witness looked."""
    setup_ms: float | None
    """Median set-up time of the proven instances."""
    handshake_ms: float | None = None
    """Median of what the handshake took of that, where there is one."""


@dataclass(frozen=True)
class Result:
    """The measured numbers of one cell in one runtime."""

    tunnel: str
    treatment: Treatment
    runtime: str
    point: Point
    metrics: Mapping[str, Estimate]
    processor: Mapping[str, Estimate]
    """Node, or MACHINE, to processor seconds per second."""
    proof: Proof
    tier: int | None = None
    """1 for the best at its point in its runtime and for those that can't be told from it, 2 for the next;
    None where nothing was repeated."""
    added: Added | None = None
    """None without a background, and where it wasn't measured alone as well."""

    @property
    def throughput(self) -> Estimate | None:
        """Payload received, Mbit/s."""
        return self.metrics.get("throughput")

    @property
    def delay(self) -> Estimate | None:
        """Median one-way delay, ms."""
        return self.metrics.get("latency_p50")

    @property
    def ranked_by(self) -> str:
        """The metric by which it is compared with others at its point."""
        return RANKED_BY[self.point.question]

    @property
    def ranking(self) -> Estimate | None:
        """That metric's estimate."""
        return self.metrics.get(self.ranked_by)

    @property
    def by_node(self) -> Mapping[str, float]:
        """Processor seconds per second of each of NODES that there is, in their order."""
        clients = [estimate.median for node, estimate in self.processor.items() if _CLIENT.fullmatch(node)]
        costs = {node: estimate.median for node, estimate in self.processor.items()}
        costs |= {CLIENTS: sum(clients)} if clients else {}
        return {node: costs[node] for node in NODES if node in costs}

    @property
    def gateways(self) -> float | None:
        """Processor seconds per second of all gateways together; None where hosts are their own gateways."""
        costs = [cost for node, cost in self.by_node.items() if node in GATEWAYS]
        return sum(costs) if costs else None

    @property
    def machine(self) -> float | None:
        """Processor seconds per second of the whole machine."""
        return self.processor[MACHINE].median if MACHINE in self.processor else None

    @property
    def encrypted(self) -> bool:
        """Whether the witness demanded, and saw, that the probe is unreadable on the wire."""
        return self.proof.evidence is not None and not self.proof.evidence.marker_expected


@dataclass(frozen=True)
class Section:
    """All results at one point, the best first by what is asked there."""

    point: Point
    results: tuple[Result, ...]

    @property
    def at_fixed_rate(self) -> bool:
        """Whether all were sent the same datagrams per second."""
        return self.point.question == "delay"

    def of_runtime(self, runtime: str) -> tuple[Result, ...]:
        """The results of one runtime."""
        return tuple(result for result in self.results if result.runtime == runtime)


@dataclass(frozen=True)
class Unmeasured:
    """Why a tunnel, or some of its instances, yielded no number."""

    tunnel: str
    runtime: str | None
    outcome: str
    """`refused`, `failed`, `skipped`, `interrupted` or `void`."""
    reason: str
    affected: str
    """How much of the campaign it concerns, in words."""
    log_tail: str | None = None
    evidence: Evidence | None = None


@dataclass(frozen=True)
class Doubt:
    """A warning, with how often it was given."""

    tunnel: str | None
    """None where it concerns more than one, or where the message names it."""
    kind: str
    message: str
    advice: str
    count: int


@dataclass(frozen=True)
class Bringing:
    """What bringing a tunnel up took, and what new keys cost its traffic: medians over instances."""

    tunnel: str
    runtime: str
    proof: Proof
    rekey: RekeyRecord | None
    """None where keys were not changed."""
    rekey_refusal: str | None
    """Why not, where that was asked for."""


@dataclass(frozen=True)
class Cryptography:
    """What a tunnel's cryptography would allow alone, and what the tunnel reached."""

    tunnel: str
    treatment: Treatment
    runtime: str
    encryption: str
    integrity: str
    implementation: str
    ns_per_packet: float | None
    ns_per_byte: float | None
    allows: float | None
    """Mbit/s of one processor that has nothing else to do, at 1400 bytes."""
    reached: float | None
    """Mbit/s: the highest median throughput of all points."""
    reason: str | None
    """Why it was not timed."""

    @property
    def share(self) -> float | None:
        """What was reached of what cryptography allows."""
        return self.reached / self.allows if self.reached is not None and self.allows else None


@dataclass(frozen=True)
class Explained:
    """A result with the reasons for its throughput."""

    result: Result
    why: Explanation


@dataclass(frozen=True)
class Course:
    """How one trial went: the one whose answer is nearest to the median of its cell."""

    result: Result
    trial: int
    metric: str
    samples: tuple[float, ...]
    """At equal distances in time, over the whole trial."""


@dataclass(frozen=True)
class Reproduction:
    """A published study that the campaign repeats, and what became of it."""

    source: str
    """Name of the published study."""
    question: str
    answers: tuple[Answer, ...]
    """The paper's research questions, answered from this campaign."""
    verdicts: tuple[Verdict, ...]
    besides: tuple[Beside, ...]
    """Published values beside ours."""
    notes: Mapping[str, str]
    """What stands here for factors of the paper."""

    @property
    def outcomes(self) -> Mapping[str, int]:
        """How many findings came out how."""
        found: dict[str, int] = {}
        for verdict in self.verdicts:
            found[verdict.outcome] = found.get(verdict.outcome, 0) + 1
        return found


@dataclass(frozen=True)
class Content:
    """Everything that a report says."""

    campaign: CampaignRecord
    sections: tuple[Section, ...]
    outcomes: Mapping[str, int]
    """How many cells came out how, by the names of OUTCOMES."""
    unmeasured: tuple[Unmeasured, ...]
    doubts: tuple[Doubt, ...]
    bringing: tuple[Bringing, ...]
    """Of each tunnel that was proven, the quickest first."""
    summary: polars.DataFrame
    """The statistics behind the results: one row per cell, runtime and metric."""
    processor: polars.DataFrame
    """Those of processor time: one row per cell, runtime and node, which stands under `metric`."""
    packet_logs: polars.DataFrame
    """One row per file of single packets: the trial that it belongs to, who wrote it, its name and size."""
    calibrations: tuple[CalibrationRecord, ...]
    """What the load generators could do with nothing between the hosts."""
    cryptography: tuple[Cryptography, ...] = ()
    machine: MachineSummary | None = None
    """What the machine did besides; None where no trial has been measured."""
    wall_time: WallTime | None = None
    """None where no trial has been measured, and after an interruption."""
    warm_ups: tuple[WarmUpRecord, ...] = ()
    """What pilots found; none where the study says how much is cut off."""
    settled: tuple[SettledRecord, ...] = ()
    """Cells that were not measured any more once enough was known of them."""
    explained: tuple[Explained, ...] = ()
    """Why tunnels are as fast as they are, at the headline points."""
    courses: tuple[Course, ...] = ()
    reproduction: Reproduction | None = None
    effects: Mapping[str, Effects] = field(default_factory=dict[str, Effects])
    """What each factor explains, by the metric that answers at some points."""
