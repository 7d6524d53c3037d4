"""Why a tool can't make some traffic."""

from __future__ import annotations

from dataclasses import replace

import pytest
from load_workloads import UDP

from tunnelbench.load.abilities import Abilities
from tunnelbench.load.base import Traffic
from tunnelbench.study.model import Socket
from tunnelbench.study.quantity import MAXIMUM, Bursts

FEW = Abilities(
    kinds=frozenset({("tcp", "stream"), ("udp", "stream")}), paced=False, socket=frozenset({"dscp"})
)
TCP = replace(UDP, transport="tcp", rate=None)
FAST = replace(UDP, rate=MAXIMUM)


@pytest.mark.parametrize(
    ("traffic", "lack"),
    [
        (replace(TCP, transport="icmp"), "send echo requests over ICMP"),
        (replace(TCP, pattern="request-response"), "exchange requests and responses over TCP"),
        (replace(TCP, pattern="connect-request-response"), "open a TCP connection for each request"),
        (replace(FAST, profile="dns"), "send in the profile dns"),
        (replace(TCP, direction="both"), "send TCP in the direction 'both'"),
        (replace(TCP, streams=2), "send 2 streams at once"),
        (replace(TCP, concurrency=3), "have 3 requests under way at once"),
        (UDP, "send at a given rate"),
        (replace(UDP, rate=Bursts(5, 10**6)), "send at a given rate"),
        (replace(TCP, congestion_control="bbr"), "choose TCP's congestion control"),
        (replace(FAST, socket=Socket(ttl=3)), "set socket.ttl"),
        (replace(TCP, socket=Socket(no_delay=True)), "set socket.no_delay"),
    ],
)
def test_what_is_lacking_is_named(traffic: Traffic, lack: str) -> None:
    assert FEW.refusal("netperf", traffic) == f"netperf can't {lack}"


@pytest.mark.parametrize(
    "traffic", [TCP, FAST, replace(FAST, socket=Socket(dscp=46)), replace(FAST, socket=Socket(mss=1000))]
)
def test_what_it_can_do_is_not_refused(traffic: Traffic) -> None:
    assert FEW.refusal("netperf", traffic) is None


def test_bursts_and_small_datagrams_are_abilities_of_their_own() -> None:
    paced = replace(FEW, paced=True, least_datagram=20)
    assert paced.refusal("D-ITG", replace(UDP, rate=Bursts(5, 10**6))) == "D-ITG can't send in bursts"
    assert paced.refusal("D-ITG", replace(UDP, payload_bytes=19)) == (
        "D-ITG can't send datagrams of less than 20 bytes"
    )
