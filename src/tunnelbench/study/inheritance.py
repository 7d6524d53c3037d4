"""Which profile inherits from which, and where that can't be."""

from __future__ import annotations

from collections.abc import Mapping

from tunnelbench.study.checks import Found, sentences
from tunnelbench.study.model import Overrides
from tunnelbench.study.nearest import advice_on

Parents = Mapping[str, str | None]
"""Each profile of a study, and the one that it inherits from."""


def parents_of(profiles: Mapping[str, Overrides]) -> Parents:
    """The profiles of a study, each with the one that it inherits from."""
    return {name: overrides.inherits for name, overrides in profiles.items()}


def lineage(parents: Parents, name: str) -> tuple[str, ...]:
    """A profile and those that it inherits from, the nearest first; each once, even in a circle."""
    profiles: list[str] = []
    profile: str | None = name
    while profile is not None and profile in parents and profile not in profiles:
        profiles.append(profile)
        profile = parents[profile]
    return tuple(profiles)


def wrong_inheritance(parents: Parents) -> Found:
    """Profiles that inherit from one that the study doesn't have, or in the end from themselves."""
    return [
        (("profiles", name, "inherits"), objection)
        for name in parents
        if (objection := _objection(parents, name)) is not None
    ]


def _objection(parents: Parents, name: str) -> str | None:
    parent = parents[name]
    if parent is not None and parent not in parents:
        return sentences(f"unknown profile '{parent}'", advice_on(parent, parents, "profiles"))
    profiles = lineage(parents, name)
    if parents[profiles[-1]] == name:
        return f"a profile can't inherit from itself: {' from '.join((*profiles, name))}"
    return None
