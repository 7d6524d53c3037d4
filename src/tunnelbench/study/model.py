"""A study: what to vary, what to hold fixed and how to measure, as frozen models.

A study is read from TOML once (see `reading`); every quantity is then in the unit that its description names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self, TypeVar, cast

from annotated_types import Ge, Gt, Interval
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    PlainSerializer,
    WithJsonSchema,
    model_validator,
)

from tunnelbench.study.catalogue import InternetProtocol, Transport
from tunnelbench.study.quantity import (
    BIT_RATE,
    DURATION,
    PERCENTAGE,
    SENDING_RATE,
    SIZE,
    Dimension,
    SendingRate,
    format_bit_rate,
    format_seconds,
    parse_bit_rate,
    parse_bytes,
    parse_ratio,
    parse_seconds,
    parse_sending_rate,
)

Topology = Literal["site-to-site", "host-to-host"]
Direction = Literal["forward", "reverse"]

_LARGEST_DATAGRAM_PAYLOAD = 65_507
"""IPv4's 65 535 bytes less the headers of IP (20) and UDP (8): RFC 791, RFC 768."""
_LARGEST_WRITE = 64 * 1024 * 1024

Level = TypeVar("Level")


def _frozen_list(value: object) -> tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list, such as [{value!r}]")
    if not value:
        raise ValueError("must name at least one level")
    return tuple(cast(Sequence[object], value))


def _distinct(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    for index, level in enumerate(levels):
        if level in levels[:index]:
            raise ValueError(f"names '{level}' twice")
    return levels


Levels = Annotated[
    tuple[Level, ...],
    BeforeValidator(_frozen_list),
    AfterValidator(_distinct),
    Field(json_schema_extra={"minItems": 1, "uniqueItems": True}),
]
"""The levels of a factor: a list of at least one, none twice."""

_NAME_PATTERN = r"^[a-z0-9][a-z0-9._-]*$"


def _plain_name(name: str) -> str:
    if re.fullmatch(_NAME_PATTERN, name) is None:
        raise ValueError(
            f"'{name}' must be lower-case letters, digits, '.', '_' and '-', the first a letter or digit"
        )
    return name


def _written(dimension: Dimension) -> dict[str, Any]:
    return {"type": "string", "pattern": dimension.pattern, "examples": list(dimension.examples)}


Name = Annotated[
    str, AfterValidator(_plain_name), WithJsonSchema({"type": "string", "pattern": _NAME_PATTERN})
]
Seconds = Annotated[
    float,
    BeforeValidator(parse_seconds),
    PlainSerializer(format_seconds),
    WithJsonSchema(_written(DURATION)),
]
PositiveSeconds = Annotated[Seconds, Gt(0)]
BitRate = Annotated[
    int,
    BeforeValidator(parse_bit_rate),
    PlainSerializer(format_bit_rate),
    WithJsonSchema(_written(BIT_RATE)),
]
Ratio = Annotated[
    float,
    BeforeValidator(parse_ratio),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": 0, "exclusiveMaximum": 1}, _written(PERCENTAGE)]}
    ),
]
Bytes = Annotated[
    int,
    BeforeValidator(parse_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, _written(SIZE)]}),
]
SendingRateLevel = Annotated[
    InstanceOf[SendingRate],
    BeforeValidator(parse_sending_rate),
    PlainSerializer(str),
    WithJsonSchema({**_written(SENDING_RATE), "pattern": f"^max$|{SENDING_RATE.pattern}"}),
]


class Frozen(BaseModel, frozen=True):
    """A value: immutable, comparable, strict about types and unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)


class About(Frozen, frozen=True):
    """What the study is."""

    id: Name
    """Short name: lower-case letters, digits, dots, dashes."""
    title: str
    """One line for headings."""
    question: str
    """The question that the study answers."""
    topology: Topology = "site-to-site"
    """`site-to-site`: host1 - gw1 - gw2 - host2, the tunnel between the gateways.
    `host-to-host`: the tunnel between host1 and host2 themselves."""


class Payloads(Frozen, frozen=True):
    """Payload sizes by transport, since a TCP write and a UDP datagram mean different things."""

    tcp: Levels[Annotated[Bytes, Interval(ge=1, le=_LARGEST_WRITE)]] = (131_072,)
    """Bytes handed to TCP in one write."""
    udp: Levels[Annotated[Bytes, Interval(ge=1, le=_LARGEST_DATAGRAM_PAYLOAD)]] = (1400,)
    """Bytes of payload in one datagram."""

    @model_validator(mode="before")
    @classmethod
    def _one_list_for_both(cls, value: object) -> object:
        if not isinstance(value, list):
            return value
        levels = cast(list[object], value)
        return {"tcp": levels, "udp": levels}


class Factors(Frozen, frozen=True):
    """What varies: a list of levels for each factor. The study is every combination of them."""

    tunnel: Levels[str]
    """`VPN/SUITE`; the suite may be a glob (`openvpn/*`) and may be left out where the VPN has only one."""
    image: Levels[Name] = ("bookworm",)
    """Root trees that the nodes run: the operating system."""
    mtu: Levels[Annotated[int, Interval(ge=68, le=65_535)]] = (1500,)
    """Maximum transmission unit of the links in bytes."""
    transport: Levels[Transport] = ("tcp",)
    """Transport protocols of the measured traffic."""
    ip: Levels[InternetProtocol] = ("ipv4",)
    """IP versions of the measured traffic."""
    payload_bytes: Payloads = Payloads()
    """One list for both transports, or `{ tcp = [...], udp = [...] }`."""
    rate: Levels[SendingRateLevel] = (SendingRate(None),)
    """UDP sending rates: `max`, payload bits per second or datagrams per second."""
    direction: Levels[Direction] = ("forward",)
    """`forward`: from host1 to host2; `reverse`: from host2 to host1."""
    load: Levels[Name] = ("engine",)
    """Programs that drive the traffic."""


class Link(Frozen, frozen=True):
    """The wide-area link, the one that the tunnel crosses; perfect where nothing is said."""

    rate: BitRate | None = None
    """Bits per second; unlimited where not given."""
    delay: Seconds = 0.0
    """Seconds added in each direction."""
    loss: Ratio = 0.0
    """Ratio of packets dropped in each direction."""


class Method(Frozen, frozen=True):
    """How to measure."""

    rounds: Annotated[int, Ge(1)] = 10
    """Most rounds; each round brings up every tunnel once."""
    rounds_min: Annotated[int, Ge(1)] = 1
    """Rounds that are finished even when the budget is spent."""
    budget: PositiveSeconds | None = None
    """Seconds for the whole campaign: no round starts that would not fit. Unlimited where not given."""
    trial: PositiveSeconds = 5.0
    """Seconds of traffic in a trial, warm-up and cool-down included."""
    warm_up: Seconds = 0.5
    """Seconds cut off at the start of a trial."""
    cool_down: Seconds = 0.2
    """Seconds cut off at the end of a trial."""
    seed: Annotated[int, Interval(ge=0, lt=2**63)] = 1
    """Seed of the random order of each round."""

    @property
    def window(self) -> float:
        """Measured seconds of a trial: what lies between warm-up and cool-down."""
        return self.trial - self.warm_up - self.cool_down

    def override(self, rounds: int | None = None, budget: float | None = None) -> Method:
        """The same method with the rounds or the budget (seconds) that the user asks for now."""
        rounds = self.rounds if rounds is None else rounds
        changes = {"rounds": rounds, "rounds_min": min(self.rounds_min, rounds)}
        return self.model_copy(update={**changes, "budget": self.budget if budget is None else budget})

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.window <= 0:
            raise ValueError(
                f"a trial of {self.trial:g} s leaves nothing to measure after {self.warm_up:g} s of warm-up "
                f"and {self.cool_down:g} s of cool-down"
            )
        if self.rounds_min > self.rounds:
            raise ValueError(f"rounds_min ({self.rounds_min}) is more than rounds ({self.rounds})")
        return self


class Study(Frozen, frozen=True):
    """A study: the combinations of levels to measure and the method."""

    about: About = Field(alias="study")
    factors: Factors
    link: Link = Link()
    method: Method = Method()
