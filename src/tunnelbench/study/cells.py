"""The expansion of a study into cells: every combination of levels that it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from tunnelbench.study.catalogue import BASELINE_VPN, Catalogue
from tunnelbench.study.fields import Frozen
from tunnelbench.study.model import Factors, Study
from tunnelbench.study.points import APPLIES, CHOSEN_BY_LOAD, Point
from tunnelbench.study.quantity import SendingRate
from tunnelbench.study.vocabulary import InternetProtocol, Profile, Transport

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

    The plain-IP baseline comes first where the study doesn't list it. Combinations that a load or a VPN can't
    carry are cells with a reason. Raises UserError for a VPN, suite, profile or load that the catalogue
    doesn't have.
    """
    points = tuple(distinct_points(study.factors, catalogue))
    return tuple(
        Cell(treatment=treatment, point=point, skipped=reason_to_skip(study, catalogue, treatment, point))
        for treatment in _treatments(study.factors, catalogue)
        for point in points
    )


def reason_to_skip(study: Study, catalogue: Catalogue, treatment: Treatment, point: Point) -> str | None:
    """Why a point can't be measured in a treatment; None where it can."""
    refusal = catalogue.load(point.load).refusal(point, study.socket)
    if refusal is not None:
        return refusal
    vpn = catalogue.vpns[treatment.vpn]
    if (point.transport, point.ip) not in vpn.carries:
        return f"{vpn.title} doesn't carry {point.transport.upper()} over {_WRITTEN_IP[point.ip]}"
    if point.ip == "ipv6" and treatment.mtu < _SMALLEST_IPV6_MTU:
        return f"IPv6 needs an MTU of at least {_SMALLEST_IPV6_MTU} bytes (RFC 8200), not {treatment.mtu}"
    return None


def distinct_points(factors: Factors, catalogue: Catalogue) -> Iterator[Point]:
    """Every combination of the levels that apply to each other, once, whatever the unit of its rate."""
    profiles = [catalogue.profile(name) for name in factors.profile]
    seen: set[tuple[Point, object]] = set()
    for transport, profile in product(factors.transport, profiles):
        for levels in _combinations(factors, transport, profile):
            load = catalogue.load(levels["load"])
            own = dict.fromkeys(CHOSEN_BY_LOAD - load.chooses)
            point = Point.model_validate({"transport": transport, "profile": profile.name, **levels, **own})
            same = (point.model_copy(update={"rate": None}), _comparable_rate(point))
            if same not in seen:
                seen.add(same)
                yield point


def _treatments(factors: Factors, catalogue: Catalogue) -> Iterator[Treatment]:
    named = [tunnel for pattern in factors.tunnel for tunnel in catalogue.tunnels(pattern)]
    if all(vpn != BASELINE_VPN for vpn, _ in named):
        named = [*catalogue.tunnels(BASELINE_VPN), *named]
    for (vpn, suite), image, mtu in product(dict.fromkeys(named), factors.image, factors.mtu):
        yield Treatment(vpn=vpn, suite=suite, image=image, mtu=mtu)


def _combinations(factors: Factors, transport: Transport, profile: Profile) -> Iterator[dict[str, Any]]:
    """All levels by factor; None for a factor that doesn't apply, so that its levels multiply nothing."""
    if transport not in profile.transports:
        return
    sizes = "request" if profile.is_transaction else transport
    levels: dict[str, Sequence[object]] = {
        "ip": factors.ip,
        "payload_bytes": getattr(factors.payload_bytes, sizes),
        "rate": getattr(factors.rate, transport, ()),
        "direction": factors.direction,
        "streams": factors.streams,
        "content": factors.content,
        "sending": factors.sending,
        "congestion_control": factors.congestion_control or (None,),
        "load": factors.load,
    }
    for name, applies in APPLIES.items():
        if not applies(transport, profile):
            levels[name] = (None,)
    for combination in product(*levels.values()):
        yield dict(zip(levels, combination, strict=True))


def _comparable_rate(point: Point) -> object:
    """The same for rates that send the same packets at the same times."""
    if not isinstance(point.rate, SendingRate) or point.payload_bytes is None:
        return point.rate
    return point.rate.bits_per_second(point.payload_bytes)


_WRITTEN_IP: dict[InternetProtocol, str] = {"ipv4": "IPv4", "ipv6": "IPv6"}
