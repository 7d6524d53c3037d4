"""Profiles of a study: the same question asked briefly, at usual length, or as a paper had it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tunnelbench.errors import UserError
from tunnelbench.study.inheritance import lineage, parents_of
from tunnelbench.study.locator import KeyPath
from tunnelbench.study.model import Overrides, Study
from tunnelbench.study.nearest import advice_on

USUAL_PROFILE = "standard"
"""The profile that is taken where none is asked for, in studies that have it."""


def profile_name(study: Study, asked: str | None) -> str | None:
    """The profile to run: the one asked for, else the usual one; None where the study has neither.

    Raises UserError that names the nearest profile where the study doesn't have the one asked for.
    """
    if asked is None:
        return USUAL_PROFILE if USUAL_PROFILE in study.profiles else None
    if asked not in study.profiles:
        has = advice_on(asked, study.profiles, "profiles") if study.profiles else "It has no profiles."
        raise UserError(f"the study {study.about.id} has no profile '{asked}'", advice=has)
    return asked


def in_profile(document: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A study's document as one of its profiles has it.

    Each key of the profile replaces that of the profile it inherits from, and each of that one the study's.
    """
    profiles: Mapping[str, Mapping[str, Any]] = document["profiles"]
    parents = {profile: content.get("inherits") for profile, content in profiles.items()}
    tables = {table: content for table, content in document.items() if table != "profiles"}
    for profile in reversed(lineage(parents, name)):
        for table, keys in profiles[profile].items():
            if table != "inherits":
                tables[table] = {**tables.get(table, {}), **keys}
    return tables


def place_in_profile(path: KeyPath, name: str, profiles: Mapping[str, Overrides]) -> KeyPath | None:
    """Where in a profile, or in one that it inherits from, the cause of a mistake stands.

    None where it stands in the study itself.
    """
    if not path or path[0] not in _TABLES:
        return None
    for profile in lineage(parents_of(profiles), name):
        keys: Mapping[str, Any] = getattr(profiles[profile], str(path[0]))
        if keys if len(path) == 1 else path[1] in keys:
            return ("profiles", profile, *path)
    return None


_TABLES = frozenset(Overrides.model_fields) - {"inherits"}
