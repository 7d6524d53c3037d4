"""Why a tunnel is as fast as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunnelbench.analysis.why import Cipher, Costs, Hop, explain

GATEWAYS = ("gw1", "gw2")
PLAIN = Costs(800, {"gw1": 0.4, "gw2": 0.35}, machine=1.6, n_processors=2, wire_overhead=1.05)
TUNNEL = Costs(
    200,
    {"host1": 0.1, "gw1": 0.95, "gw2": 0.6},
    machine=1.7,
    n_processors=2,
    wire_overhead=1.10,
    payload_per_packet=1400,
    switches={"gw1": 10_000.0},
)
positive = st.floats(0.01, 1e5)
share = st.floats(0, 1)


def test_a_busy_gateway_explains_its_tunnel() -> None:
    found = explain(TUNNEL, GATEWAYS, PLAIN, Cipher(1400, 2), link_rate=1000)
    assert found.bottleneck == found.busiest == "gw1"
    assert [ceiling.part for ceiling in found.ceilings] == [
        *("link", "headers", "tunnel headers", "plain IP", "cipher", "tunnel's work", "sharing")
    ]
    by_part = {ceiling.part: ceiling.mbit_per_second for ceiling in found.ceilings}
    assert by_part["headers"] == pytest.approx(1000 / 1.05)
    # 1 ns for each byte's share of a packet, 2.2 ns for the byte, and 4 ns that plain IP takes.
    assert found.cipher_ns_per_byte == pytest.approx(3.2)
    assert found.plain_ns_per_byte == pytest.approx(4)
    assert by_part["cipher"] == 800
    assert by_part["tunnel's work"] == pytest.approx(200 / 0.95)
    assert found.unexplained == pytest.approx(0.05)
    assert found.is_explained
    assert found.ns_per_byte["gw1"] == pytest.approx(38)


def test_idle_gateways_leave_it_unexplained() -> None:
    idle = Costs(200, {"gw1": 0.5, "gw2": 0.4})
    found = explain(idle, GATEWAYS)
    assert found.bottleneck is None
    assert found.unexplained == pytest.approx(0.5)
    assert not found.is_explained


def test_waiting_for_a_processor_is_a_part_of_its_own() -> None:
    waiting = Costs(200, {"gw1": 0.5, "gw2": 0.4}, queued={"gw1": 0.3, "gw2": 0.1})
    found = explain(waiting, GATEWAYS)
    by_part = {ceiling.part: ceiling.mbit_per_second for ceiling in found.ceilings}
    assert by_part == {"tunnel's work": 400, "run queue": 250}
    assert found.unexplained == pytest.approx(0.2)
    assert found.asleep == pytest.approx(0.2)
    assert explain(Costs(200, {"gw1": 0.5}), GATEWAYS).asleep is None
    crowded = explain(Costs(200, {"gw1": 0.9}, queued={"gw1": 2.0}), GATEWAYS)
    assert (crowded.asleep, crowded.unexplained) == (0, 0)


def test_a_cipher_timed_on_a_busy_machine_is_doubted() -> None:
    found = explain(TUNNEL, GATEWAYS, PLAIN, Cipher(0, 100))
    assert found.is_cipher_doubtful
    assert found.cipher_ns_per_byte == pytest.approx(110)
    assert {ceiling.part: ceiling.mbit_per_second for ceiling in found.ceilings}["cipher"] == pytest.approx(
        200 / 0.95
    )
    in_a_shared_kernel = explain(TUNNEL, GATEWAYS, PLAIN, Cipher(0, 100, is_accounted=False))
    assert not in_a_shared_kernel.is_cipher_doubtful


def test_a_hop_of_wifi_stands_between_the_link_and_plain_ip() -> None:
    found = explain(TUNNEL, GATEWAYS, PLAIN, link_rate=1000, hop=Hop(900, 1.2))
    by_part = {ceiling.part: ceiling.mbit_per_second for ceiling in found.ceilings}
    assert [*by_part][:6] == ["link", "headers", "Wi-Fi", "Wi-Fi frames", "tunnel headers", "plain IP"]
    assert (by_part["Wi-Fi"], by_part["Wi-Fi frames"]) == (900, pytest.approx(750))
    assert by_part["tunnel headers"] == by_part["plain IP"] == by_part["Wi-Fi frames"]
    alone = explain(TUNNEL, GATEWAYS, hop=Hop(900))
    assert [ceiling.part for ceiling in alone.ceilings] == ["Wi-Fi", "tunnel's work", "sharing"]


def test_a_full_hop_of_wifi_is_the_bottleneck() -> None:
    idle = Costs(80, {"gw1": 0.1}, wire_overhead=1.08)
    assert explain(idle, GATEWAYS, link_rate=1000, hop=Hop(100, 1.2)).bottleneck == "Wi-Fi"
    assert explain(idle, GATEWAYS, link_rate=1000, hop=Hop(200, 1.2)).bottleneck is None


def test_a_full_link_is_the_bottleneck() -> None:
    found = explain(Costs(90, {"gw1": 0.1}, wire_overhead=1.08), GATEWAYS, link_rate=100)
    assert found.bottleneck == "link"
    assert found.is_explained


def test_a_full_machine_is_the_bottleneck() -> None:
    found = explain(Costs(500, {"gw1": 0.6}, machine=1.9, n_processors=2), GATEWAYS)
    assert found.bottleneck == "machine"


def test_switches_count_for_each_packet() -> None:
    found = explain(TUNNEL, GATEWAYS)
    assert found.switches_per_packet == {"gw1": pytest.approx(10_000 / (200e6 / 8 / 1400))}


def test_without_any_cost_nothing_is_explained() -> None:
    found = explain(Costs(5, {}), GATEWAYS)
    assert found.ceilings == ()
    assert found.unexplained is None
    assert not found.is_explained


def test_nothing_explains_nothing() -> None:
    with pytest.raises(ValueError, match="nothing arrived"):
        explain(Costs(0, {}), GATEWAYS)


@given(positive, share, share, positive, positive, positive)
def test_ceilings_fall_and_never_below_what_arrived(
    throughput: float, left: float, right: float, plain: float, ns: float, link: float
) -> None:
    costs = Costs(throughput, {"gw1": left, "gw2": right}, left + right, 2, wire_overhead=1.1)
    found = explain(costs, GATEWAYS, Costs(plain, {"gw1": left}, wire_overhead=1.04), Cipher(0, ns), link)
    heights = [ceiling.mbit_per_second for ceiling in found.ceilings]
    assert heights == sorted(heights, reverse=True)
    assert min(heights) >= throughput
    assert found.unexplained is not None
    assert 0 <= found.unexplained < 1
