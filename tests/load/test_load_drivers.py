from __future__ import annotations

from typing import get_args

import pytest

from tunnelbench.load import drivers
from tunnelbench.load.base import Endpoint, Transport


def test_every_driver_is_found_under_its_name() -> None:
    found = drivers()
    assert set(found) == {"engine", "iperf", "iperf3", "netperf", "ditg"}
    assert all(driver.name == name for name, driver in found.items())
    assert all("throughput" in driver.measures for driver in found.values())
    for driver in found.values():
        assert any(driver.carries(transport, "stream", "forward") for transport in get_args(Transport))


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [(Endpoint("10.0.0.1", 5201), "10.0.0.1:5201"), (Endpoint("fd00::1", 0), "[fd00::1]:0")],
)
def test_endpoints_are_written_as_programs_expect(endpoint: Endpoint, text: str) -> None:
    assert str(endpoint) == text
