"""Claims about what turning compression on does to each VPN's throughput."""

from __future__ import annotations

from tunnelbench.analysis.findings.comparing import PAIRED_TEST, equal
from tunnelbench.analysis.findings.contrast import Contrast, contrast
from tunnelbench.analysis.findings.ruling import Part, Ruling, ordered, ruling
from tunnelbench.analysis.findings.scope import NotTestableError, Scope
from tunnelbench.analysis.findings.wording import detail, said
from tunnelbench.study.published import CompressionEffect, Level

UNCHANGED = 0.05
"""Ratio less one."""

FACTORS = ("compression", "payload", "vpn")
"""The paper's factors that such a claim varies."""


def judge_compression(claim: CompressionEffect, scope: Scope) -> Ruling:
    """Each VPN with compression against the same without, with one kind of payload."""
    here = scope.narrowed({"payload": (claim.payload,)})
    parts: list[Part] = []
    contrasts: list[tuple[Level, Contrast]] = []
    missing: list[str] = []
    for vpn, effect in _effects(claim):
        try:
            found = _compression_of(vpn, effect, here)
        except NotTestableError as reason:
            missing.append(f"{vpn} ({reason})")
            continue
        contrasts.append((vpn, found))
        says = said(found, "throughput", str(vpn))
        if effect == "unchanged":
            parts.append(equal(found.difference, says, UNCHANGED))
        else:
            parts.append(ordered(found.difference, says))
    if not parts:
        raise NotTestableError(f"no VPN was measured with and without compression: {'; '.join(missing)}")
    details = tuple(
        detail(f"{vpn}: {found.first} / {found.second}", found.difference) for vpn, found in contrasts
    )
    return ruling(parts, details, "ratio", PAIRED_TEST, missing)


def _effects(claim: CompressionEffect) -> list[tuple[Level, str]]:
    effects = {"raises": claim.raises, "lowers": claim.lowers, "unchanged": claim.unchanged}
    return [(vpn, effect) for effect, vpns in effects.items() for vpn in vpns]


def _compression_of(vpn: Level, effect: str, scope: Scope) -> Contrast:
    """On against off; off against on where it is said to lower the throughput."""
    own = scope.narrowed({"vpn": (vpn,)})
    groups = {f"compression {state}": own.having({"compression": (state,)}) for state in ("on", "off")}
    first, second = reversed(groups) if effect == "lowers" else groups
    return contrast(groups[first], groups[second], (first, second), scope.columns(["compression"]))
