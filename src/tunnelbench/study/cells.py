"""The expansion of a study into cells: every combination of levels that it asks for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from tunnelbench.study.catalogue import Catalogue
from tunnelbench.study.correspondence import Selection
from tunnelbench.study.fields import Frozen
from tunnelbench.study.model import Factors, Socket, Study
from tunnelbench.study.points import APPLIES, CHOSEN_BY_LOAD, Point
from tunnelbench.study.quantity import SendingRate
from tunnelbench.study.treatment import BASELINE_VPN, WRITTEN_IP, Treatment
from tunnelbench.study.vocabulary import InternetProtocol, Profile, Transport

_SMALLEST_IPV6_MTU = 1280
"""Bytes; RFC 8200, section 5."""


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

    Those that the study leaves out are not among them. The plain-IP baseline comes first where the study
    doesn't list it. Combinations that a load or a VPN can't
    carry are cells with a reason. Raises UserError for a VPN, suite, profile or load that the catalogue
    doesn't have.
    """
    points = tuple(distinct_points(study.factors, catalogue))
    refused = {point: _refusal(catalogue, point, study.socket) for point in points}
    cells = tuple(
        Cell(treatment=treatment, point=point, skipped=objection or refused[point] or reason)
        for treatment in _treatments(study, catalogue)
        for objection in [catalogue.vpns[treatment.vpn].objection(treatment, study.about.topology)]
        for point in points
        for reason in [None if objection else _not_carried(catalogue, treatment, point)]
    )
    return _without(cells, study.factors.leave_out)


def is_selected(cell: Cell, selection: Selection) -> bool:
    """Whether a cell has one of the levels of each column of a selection."""
    levels = {**dict(cell.treatment), **dict(cell.point)}
    return all(str(levels[column]) in map(str, allowed) for column, allowed in selection.items())


def _without(cells: tuple[Cell, ...], left_out: Sequence[Selection]) -> tuple[Cell, ...]:
    """The cells that no selection selects, and plain IP where one of them is a tunnel."""
    kept = {cell for cell in cells if not any(is_selected(cell, selection) for selection in left_out)}
    related = {(cell.treatment.baseline, cell.point) for cell in kept}
    return tuple(cell for cell in cells if cell in kept or (cell.treatment, cell.point) in related)


def _refusal(catalogue: Catalogue, point: Point, socket: Socket) -> str | None:
    """Why there can't be such traffic, whatever the tunnel."""
    load = catalogue.load(point.load)
    if refusal := load.refusal(point, socket):
        return refusal
    if point.background == "none":
        return None
    if point.question in ("throughput", "capacity"):
        return _FILLS_THE_PATH
    if not load.keeps_time:
        return f"{load.name} can't be timed to run beside a background; the engine can"
    return None


_FILLS_THE_PATH = (
    "what fills the path by itself is not measured beside a background: "
    "take echo requests, transactions, or UDP at a rate"
)


def _not_carried(catalogue: Catalogue, treatment: Treatment, point: Point) -> str | None:
    vpn = catalogue.vpns[treatment.vpn]
    carried = vpn.carries(treatment)
    if (point.transport, point.ip) not in carried:
        return f"{vpn.title} doesn't carry {point.transport.upper()} over {WRITTEN_IP[point.ip]}"
    if point.background != "none" and ("tcp", point.ip) not in carried:
        return f"{vpn.title} doesn't carry the TCP of a background over {WRITTEN_IP[point.ip]}"
    if vpn.is_proxy and not catalogue.load(point.load).speaks_socks:
        return f"{vpn.title} is a proxy, and {point.load} doesn't speak SOCKS 5; the engine does"
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


def _treatments(study: Study, catalogue: Catalogue) -> Iterator[Treatment]:
    factors = study.factors
    named = [tunnel for pattern in factors.tunnel for tunnel in catalogue.tunnels(pattern)]
    if all(choice.vpn != BASELINE_VPN for choice in named):
        named = [*catalogue.tunnels(BASELINE_VPN), *named]
    systems = tuple(_operating_systems(study))
    places = product(factors.outer_ip, factors.clients, systems, factors.mtu)
    found = (
        Treatment(
            vpn=choice.vpn,
            suite=choice.suite,
            options=choice.options,
            outer_ip=_outer_ip(choice.vpn, outer_ip, catalogue),
            clients=clients,
            gateway_os=gateway_os,
            host_os=host_os,
            mtu=mtu,
        )
        for choice, place in product(dict.fromkeys(named), tuple(places))
        for outer_ip, clients, (gateway_os, host_os), mtu in [place]
    )
    yield from dict.fromkeys(found)


def _operating_systems(study: Study) -> Iterator[tuple[str, str]]:
    """Those of gateways and hosts; hosts run what gateways run where nothing else is said."""
    factors = study.factors
    if study.about.topology == "host-to-host":
        yield from ((system, system) for system in factors.host_os or factors.gateway_os)
        return
    for gateway_os in factors.gateway_os:
        yield from ((gateway_os, host_os) for host_os in factors.host_os or (gateway_os,))


def _outer_ip(vpn: str, asked: InternetProtocol, catalogue: Catalogue) -> InternetProtocol:
    """Plain IP has nothing around it, and what is made for IPv6 between the gateways has nothing else."""
    default = catalogue.vpns[vpn].default_outer_ip
    return default if vpn == BASELINE_VPN or default == "ipv6" else asked


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
        "background": factors.background,
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
