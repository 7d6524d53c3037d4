"""What a study may ask for: VPNs with their suites and the traffic they carry, profiles, and load tools.

The catalogue is handed in by whoever knows the tunnels and the loads, so that a study is checked without
importing them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import product
from typing import TypeVar, get_args

from tunnelbench.errors import UserError
from tunnelbench.study.model import Socket
from tunnelbench.study.nearest import advice_on
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment, read_options, written_options
from tunnelbench.study.vocabulary import InternetProtocol, Profile, Transport

Item = TypeVar("Item")


@dataclass(frozen=True)
class Choice:
    """One tunnel that a level of the factor `tunnel` means."""

    vpn: str
    suite: str
    options: str
    """As a treatment has them."""

    @property
    def name(self) -> str:
        """As a study writes it: `VPN/SUITE OPTION=LEVEL`."""
        return " ".join(filter(None, [f"{self.vpn}/{self.suite}", self.options]))

    @property
    def levels(self) -> dict[str, str]:
        """The options that are not the default, by name."""
        return read_options(self.options)


def everything(_: Treatment) -> frozenset[tuple[Transport, InternetProtocol]]:
    """All traffic that there is."""
    return frozenset(product(get_args(Transport), get_args(InternetProtocol)))


def no_objection(_treatment: Treatment, _topology: str) -> None:
    """For a VPN that can be had in every combination."""


@dataclass(frozen=True)
class Vpn:
    """One VPN as a study sees it."""

    name: str
    title: str
    suites: tuple[str, ...]
    """Names of its cipher suites; the single suite `none` where it doesn't encrypt."""
    encrypted: bool
    is_proxy: bool = False
    """Whether it carries only what asks it to, in SOCKS 5."""
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Its options with their levels, the default first."""
    default_outer_ip: InternetProtocol = "ipv4"
    """The IP version between the gateways where none is asked for; `ipv6` where it knows only that."""
    carries: Callable[[Treatment], frozenset[tuple[Transport, InternetProtocol]]] = everything
    """The traffic that it can carry inside."""
    objection: Callable[[Treatment, str], str | None] = no_objection
    """Why a treatment can't be had in a topology; None where it can."""

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
    speaks_socks: bool = False
    """Whether it can send through a SOCKS 5 proxy."""
    keeps_time: bool = False
    """Whether it sends exactly when it is to, so that other traffic can be timed to run beside it."""


@dataclass(frozen=True)
class Catalogue:
    """Everything that the names in a study can mean."""

    vpns: Mapping[str, Vpn]
    """VPN by name."""
    loads: Mapping[str, Load]
    """Load tool by name."""
    profiles: Mapping[str, Profile]
    """Profile by name, the built-in ones among them."""

    unavailable: Mapping[str, str] = field(default_factory=dict[str, str])
    """VPNs by name that can't be had at all, with the reason."""

    def tunnels(self, pattern: str) -> tuple[Choice, ...]:
        """The tunnels that `VPN/SUITE OPTION=LEVEL` means, in the catalogue's order.

        The suite may be a glob (`*`, `?`, `[...]`), and may be left out where the VPN has only one. An option
        may have several levels (`carrier=udp,tcp`) or all (`carrier=*`). Raises UserError that names the
        nearest valid name where the VPN, the suite, an option or a level is unknown.
        """
        tunnel, *assignments = pattern.split() or [""]
        name, slash, suite = tunnel.partition("/")
        if name in self.unavailable:
            raise UserError(f"there is no {name} to be had: {self.unavailable[name]}")
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
        combinations = tuple(_combinations_of_options(vpn, assignments))
        return tuple(Choice(name, suite, options) for suite in suites for options in combinations)

    def load(self, name: str) -> Load:
        """The load tool of this name. Raises UserError that names the nearest valid name."""
        return _known(self.loads, name, "load")

    def profile(self, name: str) -> Profile:
        """The profile of this name. Raises UserError that names the nearest valid name."""
        return _known(self.profiles, name, "profile")


def _combinations_of_options(vpn: Vpn, assignments: list[str]) -> Iterator[str]:
    levels: dict[str, list[str]] = {}
    for assignment in assignments:
        option, equals, asked = assignment.partition("=")
        if option not in vpn.options:
            valid = advice_on(option, vpn.options, f"options of {vpn.name}")
            raise UserError(
                f"{vpn.name} has no option '{option}'",
                advice=valid if vpn.options else f"{vpn.name} has no options.",
            )
        valid_levels = vpn.options[option]
        wanted = asked.split(",") if equals else [""]
        for level in wanted:
            if level not in (*valid_levels, "*"):
                raise UserError(
                    f"{vpn.name} has no {option} '{level}'",
                    advice=advice_on(level, valid_levels, f"levels of {option}"),
                )
        levels[option] = list(valid_levels) if "*" in wanted else wanted
    for combination in product(*levels.values()):
        chosen = dict(zip(levels, combination, strict=True))
        yield written_options(
            {name: level for name, level in chosen.items() if level != vpn.options[name][0]}
        )


def _known(known: Mapping[str, Item], name: str, kind: str) -> Item:
    if name not in known:
        raise UserError(f"unknown {kind} '{name}'", advice=advice_on(name, known, f"{kind}s"))
    return known[name]
