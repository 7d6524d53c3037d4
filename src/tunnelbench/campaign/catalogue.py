"""What studies may name: made from the tunnels, profiles and load drivers that there are."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from tunnelbench.campaign.traffic import traffic_of
from tunnelbench.load import drivers
from tunnelbench.load.base import LoadDriver
from tunnelbench.load.profiles import Profile as ReadyProfile
from tunnelbench.load.profiles import profiles
from tunnelbench.study.catalogue import Catalogue, Load, Vpn
from tunnelbench.study.model import Socket
from tunnelbench.study.points import Point
from tunnelbench.study.vocabulary import BUILT_IN_PROFILES, Profile
from tunnelbench.tunnels import all_tunnels


@cache
def catalogue() -> Catalogue:
    """Every VPN with its suites and the traffic it carries, every profile, and every load tool."""
    vpns = {
        name: Vpn(
            name=name,
            title=tunnel.title,
            suites=tuple(tunnel.suites),
            carries=frozenset((transport, family.value) for transport, family in tunnel.carries),
            encrypted=any(suite.encrypts for suite in tunnel.suites.values()),
        )
        for name, tunnel in all_tunnels().items()
    }
    loads = {name: _load(driver) for name, driver in drivers().items()}
    named = [*BUILT_IN_PROFILES, *map(_profile, profiles().values())]
    return Catalogue(vpns, loads, {profile.name: profile for profile in named})


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

    return Load(driver.name, driver.chooses, refusal)
