"""What studies may name: made from the tunnels, profiles and load drivers that there are."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from tunnelbench.campaign.systems import at_tunnel_ends
from tunnelbench.campaign.traffic import traffic_of
from tunnelbench.lab import image as images
from tunnelbench.load import drivers
from tunnelbench.load.base import LoadDriver
from tunnelbench.load.profiles import Profile as ReadyProfile
from tunnelbench.load.profiles import profiles
from tunnelbench.study.catalogue import Catalogue, Load, Vpn
from tunnelbench.study.model import Socket
from tunnelbench.study.points import Point
from tunnelbench.study.systems import too_many_gateways
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.vocabulary import BUILT_IN_PROFILES, InternetProtocol, Profile, Transport
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import Place
from tunnelbench.tunnels.treatments import tunnel_of, variant_of
from tunnelbench.tunnels.unavailable import UNAVAILABLE


@cache
def catalogue() -> Catalogue:
    """Every VPN with its suites and the traffic it carries, every profile, and every load tool."""
    vpns = {
        name: Vpn(
            name=name,
            title=tunnel.title,
            suites=tuple(tunnel.suites),
            is_proxy=tunnel.is_proxy,
            encrypted=any(suite.encrypts for suite in tunnel.suites.values()),
            options={option.name: option.levels for option in tunnel.options.values()},
            default_outer_ip=tunnel.default_outer.value,
            carries=_carried,
            objection=_objection,
        )
        for name, tunnel in all_tunnels().items()
    }
    loads = {name: _load(driver) for name, driver in drivers().items()}
    named = [*BUILT_IN_PROFILES, *map(_profile, profiles().values())]
    unavailable = {name: one.reason for name, one in UNAVAILABLE.items()}
    return Catalogue(vpns, loads, {profile.name: profile for profile in named}, unavailable)


def _carried(treatment: Treatment) -> frozenset[tuple[Transport, InternetProtocol]]:
    carried = tunnel_of(treatment).carried(variant_of(treatment))
    return frozenset((transport, family.value) for transport, family in carried)


def _objection(treatment: Treatment, topology: str) -> str | None:
    if treatment.clients > 1 and topology != "remote-access":
        return f"{treatment.clients} clients need the topology remote-access, not {topology}"
    if (objection := too_many_gateways(treatment.gateway_os, topology)) is not None:
        return objection
    places = (
        Place(images.release_of(name), topology, treatment.clients)
        for name in at_tunnel_ends(treatment, topology)
    )
    tunnel, variant = tunnel_of(treatment), variant_of(treatment)
    objections = (tunnel.objection(variant, place) for place in places)
    return next((objection for objection in objections if objection is not None), None)


def _profile(ready: ReadyProfile) -> Profile:
    return Profile(
        ready.name,
        ready.title,
        frozenset({ready.transport}),
        sets_payload=True,
        sets_rate=ready.departures is not None or ready.transport == "tcp",
    )


def _load(driver: LoadDriver) -> Load:
    def refusal(point: Point, socket: Socket) -> str | None:
        # A tool that lets payload be chosen takes any.
        return driver.refusal(traffic_of(point, socket, defaultdict(bytes)))

    return Load(driver.name, driver.chooses, refusal, driver.speaks_socks, driver.keeps_time)
