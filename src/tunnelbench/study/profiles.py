"""Profiles of a study: the same question asked briefly, at usual length, or as a paper had it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tunnelbench.errors import UserError
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
    """A study's document as one of its profiles has it: each key of the profile replaces the study's."""
    tables = {table: content for table, content in document.items() if table != "profiles"}
    for table, keys in cast(Mapping[str, Any], document["profiles"][name]).items():
        tables[table] = {**tables.get(table, {}), **keys}
    return tables


def place_in_profile(path: KeyPath, name: str, overrides: Overrides) -> KeyPath | None:
    """Where in a profile the cause of a mistake stands; None where it stands in the study itself."""
    if not path or path[0] not in Overrides.model_fields:
        return None
    keys = cast(Mapping[str, Any], getattr(overrides, str(path[0])))
    is_here = bool(keys) if len(path) == 1 else path[1] in keys
    return ("profiles", name, *path) if is_here else None
