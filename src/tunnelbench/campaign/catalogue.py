"""What studies may name: made from the tunnels and load drivers that there are."""

from __future__ import annotations

from functools import cache

from tunnelbench.load import drivers
from tunnelbench.study.catalogue import Catalogue, Vpn
from tunnelbench.tunnels import all_tunnels


@cache
def catalogue() -> Catalogue:
    """Every VPN with its suites and the traffic it carries, and every load tool."""
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
    return Catalogue(vpns=vpns, loads=tuple(drivers()))
