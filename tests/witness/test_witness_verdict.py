"""The witness's judgement, refusal by refusal."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from tunnelbench.lab.messages import CaptureReport, FlowCount, KeptPacket
from tunnelbench.witness.verdict import Expectation, both_directions, judge

ESP = Expectation(
    wire=frozenset({"ipv4 esp"}),
    encrypted=True,
    suite="aes128-sha1",
    suite_read_back="aes128-sha1",
    read_back_text="enc cbc(aes)",
    payload_bytes=4800,
    probes=12,
    replies=12,
)
PLAIN = replace(
    ESP,
    wire=frozenset({"ipv4 udp"}),
    encrypted=False,
    suite="none",
    suite_read_back="none",
    read_back_text="",
)


def flow(protocol: str, *, outgoing: bool, marked: int = 0, entropy: float = 7.95) -> FlowCount:
    return FlowCount(protocol, outgoing, packets=12, bytes=6000, marked=[marked], entropy=entropy)


def both(protocol: str, marked: int = 0, entropy: float = 7.95) -> list[FlowCount]:
    return [flow(protocol, outgoing=outgoing, marked=marked, entropy=entropy) for outgoing in (True, False)]


def seen(*flows: FlowCount, dropped: int = 0) -> CaptureReport:
    return CaptureReport(list(flows), dropped, [])


def test_ciphertext_of_the_right_protocol_and_suite_is_proven() -> None:
    verdict = judge(seen(*both("ipv4 esp"), flow("arp", outgoing=True)), ESP)
    assert verdict.proven
    assert verdict.evidence.packets == {"ipv4 esp": 24, "arp": 12}
    assert not verdict.evidence.marker_forward
    assert not verdict.evidence.marker_reverse
    assert not verdict.evidence.marker_expected


def test_what_the_hop_of_wifi_said_is_kept() -> None:
    assert judge(seen(*both("ipv4 esp")), ESP).evidence.wifi_read_back == ""
    behind = replace(ESP, wifi_read_back="station:\nkey_mgmt=WPA2-PSK")
    assert judge(seen(*both("ipv4 esp")), behind).evidence.wifi_read_back == behind.wifi_read_back


def test_plain_traffic_is_proven_when_its_marker_is_seen() -> None:
    verdict = judge(seen(*both("ipv4 udp 5201", marked=12, entropy=3)), PLAIN)
    assert verdict.proven
    assert verdict.evidence.marker_forward
    assert verdict.evidence.marker_reverse


@pytest.mark.parametrize(
    ("report", "expected", "why"),
    [
        (seen(*both("ipv4 esp")), replace(ESP, replies=11), "only 11 of 12 probes came back"),
        (seen(*both("ipv4 esp"), dropped=3), ESP, "the capture lost 3 packets"),
        (seen(*both("ipv4 udp 5201", marked=12)), ESP, "ipv4 udp 5201 crossed the wire beside"),
        (seen(*both("ipv4 esp"), flow("ipv4 udp", outgoing=False)), ESP, "ipv4 udp crossed the wire beside"),
        (seen(*both("ipv4 esp"), flow("arp", outgoing=True, marked=1)), ESP, "arp crossed the wire beside"),
        (seen(), ESP, "saw only 0 bytes of ipv4 esp"),
        (seen(flow("ipv4 esp", outgoing=True)), ESP, "towards host1, but the wire saw only 0"),
        (seen(*both("ipv4 esp", marked=1)), ESP, "could be read in 1 packets towards host2"),
        (
            seen(flow("ipv4 esp", outgoing=True), flow("ipv4 esp", outgoing=False, marked=2)),
            ESP,
            "could be read in 2 packets towards host1",
        ),
        (seen(*both("ipv4 udp 5201")), PLAIN, "was not to be found on the wire towards host2"),
        (seen(*both("ipv4 esp", entropy=4.2)), ESP, "too regular for ciphertext: 4.20 bits"),
        (seen(*both("ipv4 esp")), replace(ESP, suite_read_back="null-sha1"), "says that it uses null-sha1"),
        (seen(*both("ipv4 esp")), replace(ESP, suite_read_back=None), "uses none of its suites"),
        (
            seen(*both("ipv4 esp")),
            replace(ESP, facts={"mode": "tunnel"}, facts_read_back={"mode": "transport"}),
            "mode tunnel was asked for, but the tunnel says transport",
        ),
        (
            seen(*both("ipv4 esp")),
            replace(ESP, facts={"DH group": "ecp256"}),
            "DH group ecp256 was asked for, but the tunnel says nothing of it",
        ),
        (seen(*both("ipv4 esp")), replace(ESP, compresses=True), "nothing was compressed"),
    ],
)
def test_each_doubt_refuses(report: CaptureReport, expected: Expectation, why: str) -> None:
    verdict = judge(report, expected)
    assert not verdict.proven
    assert why in str(verdict.refusal)


def test_a_protocol_is_not_taken_for_another_that_begins_alike() -> None:
    verdict = judge(seen(*both("ipv4 udp 11940")), replace(ESP, wire=frozenset({"ipv4 udp 1194"})))
    assert "ipv4 udp 11940 crossed" in str(verdict.refusal)


def test_later_fragments_have_no_ports() -> None:
    expected = replace(ESP, wire=frozenset({"ipv4 udp 1194"}))
    assert judge(seen(*both("ipv4 udp 1194"), *both("ipv4 udp")), expected).proven
    assert not judge(seen(*both("ipv4 udp 1194"), *both("ipv4 tcp")), expected).proven
    assert not judge(seen(*both("ipv4 udp 1194"), *both("ipv4 udp", marked=1)), expected).proven


def test_compressed_payload_is_smaller_on_the_wire() -> None:
    expected = replace(ESP, compresses=True, payload_bytes=12_000)
    assert judge(seen(*both("ipv4 esp")), expected).proven


def test_compressed_payload_in_the_clear_need_not_be_readable() -> None:
    expected = replace(ESP, encrypted=False, compresses=True, payload_bytes=12_000)
    assert judge(seen(*both("ipv4 esp")), expected).proven
    assert not judge(seen(*both("ipv4 esp")), replace(expected, compresses=False, payload_bytes=100)).proven


def test_only_what_a_gateway_sent_counts() -> None:
    packet = KeptPacket("ipv4 esp", True, 100, b"x")
    received = flow("ipv4 udp 5201", outgoing=False)
    left = CaptureReport([flow("ipv4 esp", outgoing=True), received], 1, [packet])
    right = CaptureReport([flow("ipv4 esp", outgoing=True)], 2, [changed(packet, outgoing=False)])
    merged = both_directions(left, right)
    assert [each.outgoing for each in merged.flows] == [True, False]
    assert {each.protocol for each in merged.flows} == {"ipv4 esp"}
    assert merged.dropped == 3
    assert merged.first == [packet]


@given(
    protocols=st.lists(st.sampled_from(["ipv4 esp", "ipv4 udp 5201", "arp", "ipv6 icmpv6"]), max_size=6),
    marked=st.integers(0, 3),
    outgoing=st.booleans(),
)
def test_a_readable_marker_never_passes_for_encrypted(
    protocols: list[str], marked: int, outgoing: bool
) -> None:
    flows = [flow(protocol, outgoing=outgoing, marked=marked) for protocol in protocols]
    verdict = judge(seen(*both("ipv4 esp"), *flows), ESP)
    if marked and protocols:
        assert not verdict.proven
