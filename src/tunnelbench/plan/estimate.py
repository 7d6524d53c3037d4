"""How long a plan takes, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import mean, quantiles

from tunnelbench.plan.rounds import PlannedInstance, Runtime
from tunnelbench.study.model import Method
from tunnelbench.study.quantity import CAPACITY

REKEY_SECONDS = 10.0
"""What forcing new keys adds to an instance."""
SYSTEM_CALLS_SECONDS = 0.8
"""Of traffic in which the system calls of a tunnel's programs are counted, once in a campaign."""
BACKGROUND_SECONDS = 2.5
"""What a background adds to a trial: it begins before the warm-up and ends after the cool-down."""


@dataclass(frozen=True)
class Span:
    """Seconds: what to expect, and between which times nearly all are."""

    low: float
    usual: float
    high: float

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.usual + other.usual, self.high + other.high)

    def __mul__(self, times: float) -> Span:
        return Span(self.low * times, self.usual * times, self.high * times)


_SEARCH_TRIAL = {"conditional": 1.0, "kth": 10.0, "rfc2544": 60.0}
"""Seconds of a trial of a search whose study doesn't say."""
_KTH_TRIALS = 10
"""At each rate, where the study doesn't say."""
_FAILED_USUAL_TRIALS = Span(0.0, 0.5, 2.0)
"""Of one capacity, each of which has another follow at a lower rate."""

NOTHING = Span(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Durations:
    """What the parts of a campaign take besides traffic, assumed or measured before."""

    origin: str
    """Where they are from, in words."""
    trial: Span
    """Of a trial, beyond its traffic."""
    instance: Mapping[Runtime, Span]
    """Of an instance, beyond its trials: lab, bring-up, proof and teardown."""
    instance_of: Mapping[tuple[str, Runtime], Span] = field(default_factory=dict[tuple[str, Runtime], Span])
    """The same of single VPNs, where it is known better."""
    calibration: Span = field(default=NOTHING)
    """Of one thing measured before the first round: a load generator alone, or a suite's cryptography."""


USUAL_DURATIONS = Durations(
    origin="what campaigns took on a virtual machine with two processors",
    trial=Span(0.08, 0.15, 0.5),
    instance={"namespace": Span(0.3, 1.2, 4.5), "kernel": Span(0.6, 1.5, 6.0)},
    calibration=Span(1.0, 2.0, 3.0),
)
"""What is assumed where no earlier campaign is at hand."""


def span_of(samples: Sequence[float]) -> Span:
    """Mean, first and last decile of what was measured; the extremes of fewer than ten. Needs one sample."""
    usual = mean(samples)
    if len(samples) < 10:
        return Span(min(samples), usual, max(samples))
    deciles = quantiles(samples, n=10, method="inclusive")
    return Span(min(deciles[0], usual), usual, max(deciles[-1], usual))


def estimate(instances: Iterable[PlannedInstance], method: Method, durations: Durations) -> Span:
    """Seconds that the instances take, one after the other.

    The ends of the span are those of every part added up, as if luck were the same all along: the truth is
    hardly ever outside. Raises KeyError where nothing is known of a runtime.
    """
    total = NOTHING
    for instance in instances:
        own = durations.instance[instance.runtime]
        total += durations.instance_of.get((instance.treatment.vpn, instance.runtime), own)
        total += (durations.trial + _exactly(method.trial)) * len(instance.points)
        backgrounds = sum(point.background != "none" for point in instance.points)
        total += _exactly(BACKGROUND_SECONDS) * backgrounds
        searches = sum(point.rate == CAPACITY for point in instance.points)
        total += _search(method, durations.trial) * searches
        total += _exactly(REKEY_SECONDS if method.rekey else 0.0)
    return total


def counting(instances: Iterable[PlannedInstance], durations: Durations) -> Span:
    """Seconds that counting system calls adds to the first round, given its instances.

    It is done in namespaces, for tunnels of programs: all of them may be such, or none.
    """
    counted = sum(
        instance.runtime == "namespace"
        and not instance.treatment.is_baseline
        and any(point.question == "throughput" for point in instance.points)
        for instance in instances
    )
    each = durations.trial + _exactly(SYSTEM_CALLS_SECONDS)
    return Span(0.0, each.usual, each.high) * counted


def rounds_within(seconds: float, one_round: Span, before: Span, method: Method) -> tuple[int, int, int]:
    """How many rounds a budget has room for, if all goes slowly, as usual, or fast."""

    def count(round_seconds: float, before_seconds: float) -> int:
        fitting = int((seconds - before_seconds) // round_seconds) if round_seconds > 0 else method.rounds
        return min(method.rounds, max(method.rounds_min, fitting))

    return (
        count(one_round.high, before.high),
        count(one_round.usual, before.usual),
        count(one_round.low, before.low),
    )


def _search(method: Method, trial: Span) -> Span:
    """What a search for capacity takes before the trial that holds the rate.

    `conditional` and `rfc2544` take about as many trials whatever the rate is; `kth` takes steps up to it,
    which is assumed to be 100 Mbit/s, between 20 and 900.
    """
    search = method.capacity
    seconds = search.trial or _SEARCH_TRIAL[search.rule]
    match search.rule:
        case "conditional":
            trials = Span(8, 25, 45)
        case "rfc2544":
            trials = Span(10, 16, 24)
        case "kth":
            steps = Span(20e6, 100e6, 900e6) * (1 / search.step)
            trials = steps * (search.trials or _KTH_TRIALS)
    short, usual = trial + _exactly(seconds), trial + _exactly(method.trial)
    return _each(trials, short) + _each(_FAILED_USUAL_TRIALS, usual)


def _each(count: Span, seconds: Span) -> Span:
    return Span(count.low * seconds.low, count.usual * seconds.usual, count.high * seconds.high)


def _exactly(seconds: float) -> Span:
    return Span(seconds, seconds, seconds)
