"""Ready traffic profiles: what applications send. The traffic engine reads the same file."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from types import MappingProxyType
from typing import Literal

import msgspec

from tunnelbench.errors import UserError
from tunnelbench.lab.traffic import Codec, Departures, Sizes
from tunnelbench.study.nearest import advice_on


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The traffic of an application."""

    name: str
    """Such as `voip-g711`."""
    title: str
    source: str
    """Where its numbers come from."""
    transport: Literal["udp", "tcp"]
    departures: Departures | None = None
    """None where the profile has sizes only."""
    sizes: Sizes
    """Of UDP datagrams or TCP messages, payload bytes."""
    codec: Codec | None = None
    """None for what is no voice."""


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    profile: tuple[Profile, ...]


@cache
def profiles() -> Mapping[str, Profile]:
    """All profiles by name, in the order of the file."""
    text = (resources.files("tunnelbench.load") / "profiles.toml").read_text(encoding="utf-8")
    file = msgspec.convert(tomllib.loads(text), _File)
    return MappingProxyType({profile.name: profile for profile in file.profile})


def profile(name: str) -> Profile:
    """The profile of this name. Raises UserError with the nearest name where there is none."""
    try:
        return profiles()[name]
    except KeyError:
        advice = advice_on(name, profiles(), "profiles")
        raise UserError(f"there is no traffic profile '{name}'", advice=advice) from None
