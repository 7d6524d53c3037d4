"""When datagrams depart and how long they are, drawn from distributions with a seed."""

from __future__ import annotations

from tunnelbench.lab.traffic.common import Tagged


class Constant(Tagged, frozen=True, tag="constant"):
    """Always the same."""

    value: float


class Uniform(Tagged, frozen=True, tag="uniform"):
    """All numbers from `low` to `high` alike."""

    low: float
    high: float


class Exponential(Tagged, frozen=True, tag="exponential"):
    """The time between events that happen independently of each other."""

    mean: float


class Normal(Tagged, frozen=True, tag="normal"):
    """Also called Gaussian."""

    mean: float
    deviation: float
    """The standard deviation."""


class Poisson(Tagged, frozen=True, tag="poisson"):
    """Whole numbers: how many independent events happen in a time."""

    mean: float
    """At most 10^9."""


class Pareto(Tagged, frozen=True, tag="pareto"):
    """`scale` or more, P(X > x) = (scale / x)^shape; the mean is infinite for a shape of 1 or less."""

    shape: float
    scale: float


class Cauchy(Tagged, frozen=True, tag="cauchy"):
    """So heavy in both tails that it has no mean."""

    location: float
    """The median."""
    scale: float
    """Half the distance between the quartiles."""


class Student(Tagged, frozen=True, tag="student"):
    """Student's t, moved by `location` and stretched by `scale`."""

    location: float
    scale: float
    degrees: float
    """Of freedom."""


class Gamma(Tagged, frozen=True, tag="gamma"):
    """Mean `shape * scale`."""

    shape: float
    scale: float


class Weibull(Tagged, frozen=True, tag="weibull"):
    """P(X > x) = exp(-(x / scale)^shape)."""

    shape: float
    scale: float


class Listed(Tagged, frozen=True, tag="listed"):
    """These values in this order, over and over."""

    values: tuple[float, ...]


class Choice(Tagged, frozen=True, tag="choice"):
    """One of these values, each as often as its weight says."""

    values: tuple[float, ...]
    weights: tuple[float, ...]


class Mixture(Tagged, frozen=True, tag="mixture"):
    """A draw from one of these distributions, each as often as its weight says."""

    parts: tuple[Distribution, ...]
    """Neither `listed` nor another `mixture`."""
    weights: tuple[float, ...]


Distribution = (
    Constant
    | Uniform
    | Exponential
    | Normal
    | Poisson
    | Pareto
    | Cauchy
    | Student
    | Gamma
    | Weibull
    | Listed
    | Choice
    | Mixture
)
"""Of numbers; what they count (ns, bytes) is said where it is used."""

Sizes = Distribution
"""Payload bytes of each datagram or message: rounded, and limited to what the transport carries."""


class BitsPerSecond(Tagged, frozen=True, tag="bits_per_second"):
    """A rate in payload bits per second, whatever the sizes."""

    value: int


class PacketsPerSecond(Tagged, frozen=True, tag="packets_per_second"):
    """A rate in datagrams per second, evenly spaced."""

    value: int


class MaximumRate(Tagged, frozen=True, tag="max"):
    """As fast as the machine can."""


class Bursts(Tagged, frozen=True, tag="bursts"):
    """Back-to-back trains (RFC 9004)."""

    datagrams: int
    """Of one train."""
    interval: int
    """From the start of a train to the start of the next, ns."""


class Process(Tagged, frozen=True, tag="process"):
    """Random intervals."""

    interval: Distribution
    """ns from a departure to the next; samples are limited to 0 ns to one hour."""


class Talk(Tagged, frozen=True, tag="talk"):
    """Voice with activity detection: evenly spaced while somebody talks, none in silence."""

    interval: int
    """Between the datagrams of a talk spurt, ns."""
    talk: Distribution
    """How long a talk spurt lasts, ns: `interval` to one hour."""
    silence: Distribution
    """How long the silence after it lasts, ns: 0 to one hour."""


Departures = BitsPerSecond | PacketsPerSecond | MaximumRate | Bursts | Process | Talk
"""When datagrams depart; the first one at once."""
