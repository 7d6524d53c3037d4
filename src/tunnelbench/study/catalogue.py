"""What a study may ask for: VPNs with their suites and the traffic they carry, profiles, and load tools.

The catalogue is handed in by whoever knows the tunnels and the loads, so that a study is checked without
importing them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from tunnelbench.errors import UserError
from tunnelbench.study.model import Socket
from tunnelbench.study.nearest import advice_on
from tunnelbench.study.points import Point
from tunnelbench.study.vocabulary import InternetProtocol, Profile, Transport

Item = TypeVar("Item")

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
class Load:
    """A load tool as a study sees it."""

    name: str
    chooses: frozenset[str]
    """Of the factors `content` and `sending` those that it obeys; in the others it has ways of its own."""
    refusal: Callable[[Point, Socket], str | None]
    """Why it can't drive some traffic; None where it can."""


@dataclass(frozen=True)
class Catalogue:
    """Everything that the names in a study can mean."""

    vpns: Mapping[str, Vpn]
    """VPN by name."""
    loads: Mapping[str, Load]
    """Load tool by name."""
    profiles: Mapping[str, Profile]
    """Profile by name, the built-in ones among them."""

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

    def load(self, name: str) -> Load:
        """The load tool of this name. Raises UserError that names the nearest valid name."""
        return _known(self.loads, name, "load")

    def profile(self, name: str) -> Profile:
        """The profile of this name. Raises UserError that names the nearest valid name."""
        return _known(self.profiles, name, "profile")


def _known(known: Mapping[str, Item], name: str, kind: str) -> Item:
    if name not in known:
        raise UserError(f"unknown {kind} '{name}'", advice=advice_on(name, known, f"{kind}s"))
    return known[name]
