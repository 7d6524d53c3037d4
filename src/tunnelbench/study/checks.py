"""What can be wrong with a study whose every value is well formed: unknown names, levels in vain."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from tunnelbench.errors import UserError
from tunnelbench.study.catalogue import Catalogue, Choice
from tunnelbench.study.cells import Cell, expand, is_selected
from tunnelbench.study.locator import KeyPath
from tunnelbench.study.model import Factors, Study
from tunnelbench.study.points import TRANSACTIONS
from tunnelbench.study.systems import too_many_gateways
from tunnelbench.study.treatment import Treatment

Found = list[tuple[KeyPath, str]]
"""Places in the study, and what is wrong there."""


def unknown_names(study: Study, catalogue: Catalogue) -> Found:
    """Tunnels, profiles and loads that the catalogue doesn't have."""
    checks: dict[str, Callable[[str], object]] = {
        "tunnel": catalogue.tunnels,
        "profile": catalogue.profile,
        "load": catalogue.load,
    }
    found: Found = []
    for factor, check in checks.items():
        for index, level in enumerate(getattr(study.factors, factor)):
            try:
                check(level)
            except UserError as error:
                found.append((("factors", factor, index), sentences(error.message, error.advice or "")))
    return found


def vain_levels(study: Study, catalogue: Catalogue) -> Found:
    """Levels that the study names and no cell can measure, with the reason.

    A reason that explains several levels is told once, of the first factor in question.
    """
    cells = expand(study, catalogue)
    found: dict[str, KeyPath] = {}
    for level in _named_levels(study, catalogue):
        own = [cell for cell in cells if level.has(cell)]
        if all(cell.skipped is not None for cell in own):
            reason = own[0].skipped if own else level.reason_without_cells
            if reason is not None:
                found.setdefault(reason, level.path)
    return [*((path, reason) for reason, path in found.items()), *_idle_selections(study, catalogue)]


def sentences(message: str, advice: str) -> str:
    """A message, and its advice if there is any."""
    return f"{message}. {advice}" if advice else message


def _idle_selections(study: Study, catalogue: Catalogue) -> Iterator[tuple[KeyPath, str]]:
    """Combinations to leave out that the study doesn't have anyway."""
    selections = study.factors.leave_out
    if not selections:
        return
    factors = study.factors.model_copy(update={"leave_out": ()})
    cells = expand(study.model_copy(update={"factors": factors}), catalogue)
    for index, selection in enumerate(selections):
        if not any(is_selected(cell, selection) for cell in cells):
            yield ("factors", "leave_out", index), "the study has no such combination"


@dataclass(frozen=True)
class _Level:
    path: KeyPath
    has: Callable[[Cell], bool]
    reason_without_cells: str | None = None
    """What is wrong where no cell has it; None where nothing is."""


def _named_levels(study: Study, catalogue: Catalogue) -> Iterator[_Level]:
    factors = study.factors
    if study.about.topology == "host-to-host":
        if "gateway_os" in factors.model_fields_set:
            yield _Level(("factors", "gateway_os"), lambda _: False, _NO_GATEWAYS)
        if study.link.host_rate is not None:
            yield _Level(("link", "host_rate"), lambda _: False, _NO_HOST_LINKS)
    for index, level in enumerate(factors.gateway_os):
        if reason := too_many_gateways(level, study.about.topology):
            yield _Level(("factors", "gateway_os", index), lambda _: False, reason)
    if study.link.wifi_rate is not None:
        yield from _in_vain_with_wifi(study)
    for name in _IN_QUESTION:
        if name in factors.model_fields_set:
            for index, level in enumerate(getattr(factors, name)):
                reason = _reason_without_cells(name, level, factors, catalogue)
                yield _Level(("factors", name, index), _having(name, level), reason)
    for kind in factors.payload_bytes.model_fields_set:
        for index, level in enumerate(getattr(factors.payload_bytes, kind)):
            yield _Level(("factors", "payload_bytes", kind, index), _having_payload(kind, level))
    for index, pattern in enumerate(factors.tunnel):
        yield _Level(("factors", "tunnel", index), _having_tunnel(catalogue.tunnels(pattern)))


def _in_vain_with_wifi(study: Study) -> Iterator[_Level]:
    if study.about.topology != "site-to-site":
        yield _Level(("link", "wifi_rate"), lambda _: False, _NO_WIFI)
    for index, mtu in enumerate(study.factors.mtu):
        if mtu > _LARGEST_OF_WIFI:
            reason = f"a hop of Wi-Fi takes no packets of more than {_LARGEST_OF_WIFI} bytes"
            yield _Level(("factors", "mtu", index), lambda _: False, reason)


_LARGEST_OF_WIFI = 1500
"""MTU of the interfaces that hostapd makes."""
_NO_GATEWAYS = "the topology host-to-host has no gateways, its hosts are the ends of tunnels: say host_os"
_NO_HOST_LINKS = "the topology host-to-host has one link, that between its hosts: say its rate"
_NO_WIFI = "only the topology site-to-site has a hop of Wi-Fi, between host1 and gw1"

_IN_QUESTION = (
    *("load", "profile", "streams", "direction", "content", "sending", "congestion_control"),
    *("background", "transport", "ip", "outer_ip", "clients", "mtu"),
)


def _having(name: str, level: object) -> Callable[[Cell], bool]:
    of_treatment = name in Treatment.model_fields
    return lambda cell: getattr(cell.treatment if of_treatment else cell.point, name) == level


def _having_payload(kind: str, level: int) -> Callable[[Cell], bool]:
    def has(cell: Cell) -> bool:
        point = cell.point
        of_kind = "request" if point.profile in TRANSACTIONS else point.transport
        return of_kind == kind and point.payload_bytes == level

    return has


def _having_tunnel(tunnels: Iterable[Choice]) -> Callable[[Cell], bool]:
    known = frozenset(tunnels)
    return lambda cell: Choice(cell.treatment.vpn, cell.treatment.suite, cell.treatment.options) in known


def _reason_without_cells(name: str, level: Any, factors: Factors, catalogue: Catalogue) -> str | None:  # noqa: ANN401
    match name:
        case "profile":
            transports = " or ".join(sorted(catalogue.profile(level).transports))
            return f"the profile {level} is traffic over {transports}: add that to factors.transport"
        case "transport":
            profiles = [catalogue.profile(profile) for profile in factors.profile]
            if not any(set(factors.transport) & profile.transports for profile in profiles):
                return None  # It is said of the profiles.
            return f"none of the study's profiles is traffic over {level}: {', '.join(factors.profile)}"
        case "streams" | "direction" | "content" | "sending" | "congestion_control":
            # What goes without saying may be said.
            usual = Factors.model_fields[name].default
            return None if usual and level in usual else f"it would change nothing: {_REACH[name]}"
        case _:
            return None


_REACH = {
    "streams": "streams are those of TCP",
    "direction": "echo requests and transactions go both ways as it is",
    "content": "no load of this study lets its payload be chosen",
    "sending": "it is how the engine sends UDP",
    "congestion_control": "it is TCP's",
}
"""To what a factor applies, for a level that applies to nothing in a study."""
