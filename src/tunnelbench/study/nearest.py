"""The valid name that a mistyped one was probably meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The most similar valid name (measure of Ratcliff and Obershelp, case ignored), if one is close."""
    by_folded = {candidate.casefold(): candidate for candidate in valid}
    close = get_close_matches(name.casefold(), by_folded, n=1, cutoff=0.45)
    return by_folded[close[0]] if close else None


def advice_on(name: str, valid: Iterable[str], what: str) -> str:
    """Advice for an unknown name: the nearest valid one where there is one, and all of them.

    `what` says what the names are, in the plural: `suites of openvpn`.
    """
    names = tuple(valid)
    candidate = nearest(name, names)
    question = "" if candidate is None else f"Did you mean '{candidate}'? "
    return f"{question}Valid {what}: {', '.join(names)}."
