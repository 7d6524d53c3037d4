"""Of two gateways that differ, the slower one's cryptography counts."""

from __future__ import annotations

from tunnelbench.campaign.cryptography import slowest
from tunnelbench.ciphers.cost import NOTHING, Cost
from tunnelbench.ciphers.measure import Alone

OLD = Alone("OpenSSL 1.1.1w", Cost(300.0, 0.8))
NEW = Alone("OpenSSL 3.5.1", Cost(500.0, 0.4))
UNKNOWN = Alone("Linux 5.10.46", None, "no AF_ALG")


def test_it_is_the_one_that_allows_least_and_names_its_image() -> None:
    assert slowest({"trixie": NEW, "bullseye": OLD}) == Alone("OpenSSL 1.1.1w on bullseye", OLD.cost)
    assert slowest({"trixie": NEW, "open": Alone("none", NOTHING)}).cost == NEW.cost


def test_gateways_that_are_alike_name_none() -> None:
    assert slowest({"trixie": NEW}) == NEW


def test_what_could_not_be_timed_may_be_the_slower_one() -> None:
    found = slowest({"trixie": NEW, "bullseye": UNKNOWN})
    assert found == Alone("Linux 5.10.46 on bullseye", None, "on bullseye: no AF_ALG")
