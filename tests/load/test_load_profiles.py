"""The ready traffic profiles, as the Python side reads them."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from tunnelbench.errors import UserError
from tunnelbench.lab.traffic import (
    Choice,
    Constant,
    Departures,
    Distribution,
    Exponential,
    PacketsPerSecond,
    Talk,
)
from tunnelbench.load.profiles import Profile, profile, profiles

GOLDEN = Path(__file__).parents[2] / "crates" / "traffic" / "tests" / "golden" / "profiles" / "all.msgpack"


def test_both_sides_read_the_same_profiles() -> None:
    """The golden file is written by the engine's tests, from the same TOML file."""
    assert msgspec.msgpack.encode(list(profiles().values())) == GOLDEN.read_bytes()
    assert msgspec.msgpack.decode(GOLDEN.read_bytes(), type=list[Profile]) == list(profiles().values())


def test_a_profile_is_typed() -> None:
    voice = profile("voip-g711")
    assert (voice.transport, voice.codec) == ("udp", "g711_plc")
    assert voice.departures == PacketsPerSecond(50)
    assert voice.sizes == Constant(172.0)
    spoken = profile("voip-g729-crtp-vad")
    assert spoken.departures == Talk(20_000_000, Exponential(1.004e9), Exponential(1.587e9))
    assert spoken.sizes == Constant(22.0)


@pytest.mark.parametrize(("name", "headers"), [("imix", 28), ("imix-ipv6", 48)])
def test_the_internet_mix_has_sizes_of_ip_packets(name: str, headers: int) -> None:
    mix = profile(name)
    assert mix.departures is None
    assert isinstance(mix.sizes, Choice)
    assert mix.sizes.weights == (7.0, 4.0, 1.0)
    smallest, *others = (size + headers for size in mix.sizes.values)
    assert others == [576, 1500]
    assert smallest == max(40, 12 + headers)


def test_every_profile_and_kind_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "traffic.md").read_text(encoding="utf-8")
    named = {re.sub("(-crtp)?(-vad)?$", "", name) for name in profiles()}
    kinds = {kind.__struct_config__.tag for kind in (*Departures.__args__, *Distribution.__args__)}
    assert [name for name in sorted(named | kinds) if f"| `{name}`" not in page] == []


def test_an_unknown_profile_is_the_users_to_mend() -> None:
    with pytest.raises(UserError, match="there is no traffic profile 'voip-g722'") as caught:
        profile("voip-g722")
    assert "Did you mean 'voip-g72" in (caught.value.advice or "")
