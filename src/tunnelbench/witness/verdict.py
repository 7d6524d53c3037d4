"""Judges what was captured on the wire between the gateways: pure, so that every refusal can be tested."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from msgspec.structs import replace

from tunnelbench.lab.messages import CaptureReport, FlowCount
from tunnelbench.witness.evidence import Evidence, Verdict

NOISE = ("arp", "ipv6 icmpv6")
"""What neighbours say to each other on any link, allowed beside a tunnel as long as it carries no marker."""

LEAST_ENTROPY = 7.0
"""Bits per byte below which a sample is not taken for ciphertext.

Random bytes of the size of a probe's sample come out above 7.9 even with the downward bias of the plain
estimate (G. A. Miller, Note on the bias of information estimates, 1955); headers that are not encrypted cost
some tenths.
"""
LEAST_SAMPLE = 2000
"""Bytes of a flow below which its entropy says nothing."""

_COMPRESSED = 0.8
"""The most of its size that compressed payload may have on the wire, headers included."""

_SHOWN_PACKETS = 4
_SHOWN_BYTES = 96


@dataclass(frozen=True)
class Expectation:
    """What must be true of a tunnel."""

    wire: frozenset[str]
    """Protocols that may cross the wire, as captures name them: `ipv4 esp`; a name covers its ports."""
    encrypted: bool
    suite: str
    suite_read_back: str | None
    read_back_text: str
    payload_bytes: int
    """Bytes of payload that crossed in each direction while the capture ran."""
    probes: int
    replies: int
    facts: Mapping[str, str] = field(default_factory=dict[str, str])
    """What was asked for besides the suite."""
    facts_read_back: Mapping[str, str] = field(default_factory=dict[str, str])
    compresses: bool = False
    """Whether the payload, which can be compressed very well, must shrink on the wire."""
    fragmented: int = 0
    """Datagrams that came back although they were too large for one packet."""
    wifi_read_back: str = ""
    """What both ends of a hop of Wi-Fi said of it, which was found right when the lab was built."""


def both_directions(left: CaptureReport, right: CaptureReport) -> CaptureReport:
    """What both gateways sent: `outgoing` is now the direction from the first site to the second.

    What a gateway receives is left out, because its kernel shows a capture the packets once more after they
    were decrypted, on the interface that they came in by.
    """
    return CaptureReport(
        flows=[
            *(flow for flow in left.flows if flow.outgoing),
            *(replace(flow, outgoing=False) for flow in right.flows if flow.outgoing),
        ],
        dropped=left.dropped + right.dropped,
        first=[packet for report in (left, right) for packet in report.first if packet.outgoing],
    )


def judge(report: CaptureReport, expected: Expectation) -> Verdict:
    """Believes in a tunnel only when everything fits; the refusal names the first thing that does not."""
    return Verdict(refusal=next(_refusals(report, expected), None), evidence=_evidence(report, expected))


def _refusals(report: CaptureReport, expected: Expectation) -> Iterator[str]:
    if expected.replies < expected.probes:
        yield f"only {expected.replies} of {expected.probes} probes came back through the tunnel"
    if report.dropped:
        yield f"the capture lost {report.dropped} packets, so nothing can be proven"
    strangers = [flow for flow in report.flows if not _is_expected(flow, expected) and not _is_noise(flow)]
    if strangers:
        names = ", ".join(sorted({flow.protocol for flow in strangers}))
        yield f"{names} crossed the wire beside the tunnel, which should carry all in {_names(expected)}"
    for outgoing in (True, False):
        direction = "towards host2" if outgoing else "towards host1"
        flows = [flow for flow in report.flows if flow.outgoing is outgoing]
        carried = sum(flow.bytes for flow in flows if _is_expected(flow, expected))
        if expected.compresses and carried > _COMPRESSED * expected.payload_bytes:
            yield (
                f"the probes' payload is the same few bytes over and over, yet {expected.payload_bytes} "
                f"bytes of it took {carried} bytes on the wire {direction}: nothing was compressed"
            )
        if not expected.compresses and carried < expected.payload_bytes:
            yield (
                f"{expected.payload_bytes} bytes of payload went {direction}, but the wire saw only "
                f"{carried} bytes of {_names(expected)}"
            )
        marked = sum(_marked(flow) for flow in flows)
        if expected.encrypted and marked:
            yield f"the probe's payload could be read in {marked} packets {direction}"
        if not expected.encrypted and not expected.compresses and not marked:
            yield f"the probe's payload was not to be found on the wire {direction}, though in the clear"
    if expected.encrypted:
        for flow in report.flows:
            if _is_expected(flow, expected) and flow.bytes >= LEAST_SAMPLE and flow.entropy < LEAST_ENTROPY:
                yield (
                    f"the bytes of {flow.protocol} are too regular for ciphertext: "
                    f"{flow.entropy:.2f} bits per byte"
                )
    if expected.suite_read_back != expected.suite:
        yield (
            f"suite {expected.suite} was asked for, but the tunnel says that it uses "
            f"{expected.suite_read_back or 'none of its suites'}"
        )
    for name, asked in expected.facts.items():
        found = expected.facts_read_back.get(name)
        if found != asked:
            yield f"{name} {asked} was asked for, but the tunnel says {found or 'nothing of it'}"


def _evidence(report: CaptureReport, expected: Expectation) -> Evidence:
    packets: dict[str, int] = {}
    entropy: dict[str, float] = {}
    for flow in report.flows:
        packets[flow.protocol] = packets.get(flow.protocol, 0) + flow.packets
        entropy[flow.protocol] = min(entropy.get(flow.protocol, 8.0), round(flow.entropy, 3))
    shown = [packet for packet in report.first if packet.protocol not in NOISE][:_SHOWN_PACKETS]
    return Evidence(
        packets=packets,
        marker_forward=any(_marked(flow) for flow in report.flows if flow.outgoing),
        marker_reverse=any(_marked(flow) for flow in report.flows if not flow.outgoing),
        marker_expected=not expected.encrypted,
        suite_asked=expected.suite,
        suite_read_back=expected.suite_read_back or "",
        first_packets=[packet.data[:_SHOWN_BYTES].hex() for packet in shown],
        read_back_text=expected.read_back_text,
        fragmented=expected.fragmented,
        facts_asked=expected.facts,
        facts_read_back=expected.facts_read_back,
        entropy=entropy,
        wifi_read_back=expected.wifi_read_back,
    )


def _is_expected(flow: FlowCount, expected: Expectation) -> bool:
    return any(
        flow.protocol == name or flow.protocol.startswith(f"{name} ") or _is_later_fragment(flow, name)
        for name in expected.wire
    )


def _is_later_fragment(flow: FlowCount, name: str) -> bool:
    """Only the first fragment of a packet has its ports (RFC 791)."""
    return name.startswith(f"{flow.protocol} ") and name.rsplit(" ", 1)[-1].isdecimal()


def _is_noise(flow: FlowCount) -> bool:
    return flow.protocol in NOISE and not _marked(flow)


def _marked(flow: FlowCount) -> int:
    return sum(flow.marked)


def _names(expected: Expectation) -> str:
    return " or ".join(sorted(expected.wire))
