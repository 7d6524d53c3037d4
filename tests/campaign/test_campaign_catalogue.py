"""The bundled studies name only what there is."""

from __future__ import annotations

import pytest

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.study.cells import expand
from tunnelbench.study.library import bundled
from tunnelbench.study.reading import read_study


@pytest.mark.parametrize("name", bundled())
def test_every_bundled_study_can_be_expanded(name: str) -> None:
    cells = expand(read_study(bundled()[name], catalogue()), catalogue())
    assert any(cell.skipped is None for cell in cells)


def test_plain_ip_is_the_first_vpn() -> None:
    assert next(iter(catalogue().vpns)) == "open"


def test_what_forwards_single_ports_carries_no_datagrams() -> None:
    assert {transport for transport, _ in catalogue().vpns["ssh-port-forwarding"].carries} == {"tcp"}
