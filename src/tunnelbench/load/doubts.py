"""What makes a trial of the traffic engine doubtful."""

from __future__ import annotations

from collections.abc import Iterator

from tunnelbench.lab.traffic import Histogram, TcpReceived, UdpReceived, UdpSent
from tunnelbench.load.base import LoadWarning
from tunnelbench.load.clocks import ClockOffset

_SHORT_RATE = 0.99
_LATE_SHARE = 0.01
_LONG_GAP_NS = 500_000_000
_CLOCK_STEP_NS = 100_000


def of_tcp(received: TcpReceived, clock_step: int) -> list[LoadWarning]:
    """The doubts about a TCP trial; `clock_step` is the larger of both ends', ns."""
    return [*_gap(received.longest_gap), *_step(clock_step)]


def of_udp(sent: UdpSent, received: UdpReceived, server_clock: ClockOffset) -> list[LoadWarning]:
    """The doubts about a UDP trial."""
    return [
        *_sender(sent),
        *_receiver(received),
        *_gap(received.flow.longest_gap),
        *_step(max(sent.clock_step, received.clock_step, key=abs)),
        *_clocks(received.flow.delay, server_clock),
    ]


def _sender(sent: UdpSent) -> Iterator[LoadWarning]:
    if sent.asked_rate is not None and sent.achieved_rate < _SHORT_RATE * sent.asked_rate:
        yield LoadWarning(
            "rate_not_reached",
            f"{sent.achieved_rate / 1e6:.4g} Mbit/s were sent instead of {sent.asked_rate / 1e6:.4g}",
            "The load generator is at its limit: lower the rate, or give it a processor of its own.",
        )
    if sent.late > _LATE_SHARE * sent.measured.packets:
        yield LoadWarning(
            "late_departures",
            f"{sent.late} of {sent.measured.packets} datagrams left more than 1 ms late",
            "The latency includes this wait: lower the rate, or keep the machine free of other work.",
        )


def _receiver(received: UdpReceived) -> Iterator[LoadWarning]:
    if received.buffer_drops > 0:
        yield LoadWarning(
            "receiver_drops",
            f"the receiver was too slow for {received.buffer_drops} datagrams, which count as lost",
            "This loss is not the tunnel's: lower the rate, or keep the machine free of other work.",
        )


def _gap(longest_gap: int) -> Iterator[LoadWarning]:
    if longest_gap >= _LONG_GAP_NS:
        yield LoadWarning(
            "gap",
            f"nothing arrived for {longest_gap / 1e9:.2g} s of the measured window",
            "See whether the tunnel was rebuilt or stalled then; a longer warm-up hides a slow start.",
        )


def _step(clock_step: int) -> Iterator[LoadWarning]:
    if abs(clock_step) >= _CLOCK_STEP_NS:
        yield LoadWarning(
            "clock_step",
            f"a node's clock was set by {clock_step / 1e6:.4g} ms during the trial",
            "One-way delays of this trial are wrong: let the clock settle before measuring.",
        )


def _clocks(delay: Histogram | None, server_clock: ClockOffset) -> Iterator[LoadWarning]:
    if server_clock.uncertainty > 0:
        yield LoadWarning(
            "clock_offset",
            f"the two ends have clocks of their own, compared to {server_clock.uncertainty / 1e6:.2g} ms",
            "One-way delays are no more exact than that: put both ends on one kernel, or use round trips.",
        )
    if delay is not None and delay.negative > 0:
        yield LoadWarning(
            "negative_delay",
            f"{delay.negative} datagrams arrived before they were due to leave, by the clocks",
            "The clocks of the two ends are apart: put both ends on one kernel, or use round trips.",
        )
