"""What studies may name: made from the tunnels, profiles and load drivers that there are."""

from __future__ import annotations

from collections import defaultdict
from functools import cache

from tunnelbench.campaign.traffic import traffic_of
from tunnelbench.load import drivers
from tunnelbench.load.base import LoadDriver
from tunnelbench.study.catalogue import Catalogue, Load, Vpn
from tunnelbench.study.model import Socket
from tunnelbench.study.points import Point
from tunnelbench.study.vocabulary import BUILT_IN_PROFILES
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
    profiles = {profile.name: profile for profile in BUILT_IN_PROFILES}
    return Catalogue(vpns, {name: _load(driver) for name, driver in drivers().items()}, profiles)


def _load(driver: LoadDriver) -> Load:
    def refusal(point: Point, socket: Socket) -> str | None:
        # A tool that lets payload be chosen takes any.
        return driver.refusal(traffic_of(point, socket, defaultdict(bytes)))

    return Load(driver.name, driver.chooses, refusal)
