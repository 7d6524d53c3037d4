"""Images by side, as levels name them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.study.fields import parse_systems
from tunnelbench.study.systems import Systems, read_systems
from tunnelbench.study.treatment import Treatment

NAMES = st.from_regex(r"[a-z0-9][a-z0-9._-]*", fullmatch=True)


@given(NAMES, NAMES)
def test_two_images_are_one_for_each_side(first: str, second: str) -> None:
    systems = read_systems(parse_systems(f"{first}+{second}"))
    assert systems == Systems(first, second)
    assert read_systems(str(systems)) == systems
    assert systems.differ == (first != second)


@given(NAMES)
def test_one_image_is_for_both_sides(name: str) -> None:
    assert read_systems(parse_systems(name)) == Systems(name, name)
    assert parse_systems(f"{name}+{name}") == name


@pytest.mark.parametrize("level", ["", "+", "bookworm+", "+trixie", "Bookworm", "bookworm + trixie", "a+b+c"])
def test_what_names_no_images(level: str) -> None:
    with pytest.raises(ValueError, match=r"must be lower-case letters|names 3 images"):
        parse_systems(level)


def test_a_treatment_runs_the_images_of_both_sides_of_gateways_and_hosts() -> None:
    treatment = Treatment(
        vpn="gre", suite="none", gateway_os="bullseye+trixie", host_os="trixie+bookworm", mtu=1500
    )
    assert treatment.images == ("bullseye", "trixie", "bookworm")
    assert treatment.systems == "gateways bullseye+trixie, hosts trixie+bookworm"
    assert treatment.baseline.images == treatment.images
