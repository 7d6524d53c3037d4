"""What a study may ask for: the VPNs with their suites and the traffic they carry, and the load tools.

The catalogue is handed in by whoever knows the tunnels and the loads, so that a study is checked without
importing them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

from tunnelbench.errors import UserError
from tunnelbench.study.nearest import advice_on

Transport = Literal["tcp", "udp"]
InternetProtocol = Literal["ipv4", "ipv6"]

BASELINE_VPN = "open"
"""Plain IP, to which every result is related."""


@dataclass(frozen=True)
class Vpn:
    """One VPN as a study sees it."""

    name: str
    title: str
    suites: tuple[str, ...]
    """Names of its cipher suites; the single suite `none` where it doesn't encrypt."""
    carries: frozenset[tuple[Transport, InternetProtocol]]
    """The traffic that it can carry inside."""
    encrypted: bool

    def __post_init__(self) -> None:
        if not self.suites:
            raise ValueError(
                f"{self.name} has no suite; a VPN without encryption has the single suite 'none'"
            )


@dataclass(frozen=True)
class Catalogue:
    """Everything that the names in a study can mean."""

    vpns: Mapping[str, Vpn]
    """VPN by name."""
    loads: tuple[str, ...]
    """Names of the load tools."""

    def tunnels(self, pattern: str) -> tuple[tuple[str, str], ...]:
        """The (VPN, suite) pairs that `VPN/SUITE` means, in the catalogue's order.

        The suite may be a glob (`*`, `?`, `[...]`), and may be left out where the VPN has only one. Raises
        UserError that names the nearest valid name where the VPN or the suite is unknown.
        """
        name, slash, suite = pattern.partition("/")
        vpn = self.vpns.get(name)
        if vpn is None:
            raise UserError(f"unknown VPN '{name}'", advice=advice_on(name, self.vpns, "VPNs"))
        if not slash and len(vpn.suites) > 1:
            raise UserError(
                f"'{name}' has several suites and none is named",
                advice=f"Write {name}/{vpn.suites[0]} for one, {name}/* for all. "
                f"Valid suites of {name}: {', '.join(vpn.suites)}.",
            )
        wanted = suite if slash else "*"
        suites = tuple(candidate for candidate in vpn.suites if fnmatchcase(candidate, wanted))
        if not suites:
            raise UserError(
                f"{name} has no suite '{wanted}'", advice=advice_on(wanted, vpn.suites, f"suites of {name}")
            )
        return tuple((name, suite) for suite in suites)

    def check_load(self, load: str) -> None:
        """Raises UserError that names the nearest valid name where the load tool is unknown."""
        if load not in self.loads:
            raise UserError(f"unknown load '{load}'", advice=advice_on(load, self.loads, "loads"))
