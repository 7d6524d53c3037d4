"""A workload to start from."""

from __future__ import annotations

from tunnelbench.load.base import Endpoint, Workload
from tunnelbench.study.quantity import SendingRate

UDP = Workload(
    transport="udp",
    ip="ipv4",
    payload_bytes=1000,
    rate=SendingRate(8_000_000),
    direction="forward",
    warm_up_s=0.5,
    measure_s=2.0,
    cool_down_s=0.25,
    server=Endpoint("10.0.0.2", 0),
    connect=Endpoint("10.0.0.2", 0),
    client_address="10.0.0.1",
)
