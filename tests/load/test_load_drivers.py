from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest
from load_workloads import UDP

from tunnelbench.load import drivers
from tunnelbench.load.base import Endpoint
from tunnelbench.study.vocabulary import Transport


def test_every_driver_is_found_under_its_name() -> None:
    found = drivers()
    assert set(found) == {"engine", "iperf", "iperf3", "netperf", "ditg", "ping"}
    assert all(driver.name == name for name, driver in found.items())
    assert all({"throughput", "round_trip_p50"} & driver.measures for driver in found.values())
    for driver in found.values():
        refusals = [
            driver.refusal(replace(UDP, transport=transport, rate=None)) for transport in get_args(Transport)
        ]
        assert None in refusals
        assert all(refusal is None or driver.title in refusal for refusal in refusals)


@pytest.mark.parametrize(
    ("endpoint", "text"),
    [(Endpoint("10.0.0.1", 5201), "10.0.0.1:5201"), (Endpoint("fd00::1", 0), "[fd00::1]:0")],
)
def test_endpoints_are_written_as_programs_expect(endpoint: Endpoint, text: str) -> None:
    assert str(endpoint) == text
