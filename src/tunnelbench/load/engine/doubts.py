"""What makes a trial of the traffic engine doubtful."""

from __future__ import annotations

from collections.abc import Iterator

from tunnelbench.lab.traffic import (
    Batched,
    Histogram,
    PerPacket,
    Probed,
    Segmented,
    SendMode,
    TcpReceived,
    TcpSent,
    Transacted,
    UdpReceived,
    UdpSent,
)
from tunnelbench.load.base import LoadWarning
from tunnelbench.load.engine.scene import Scene
from tunnelbench.study.quantity import MAXIMUM
from tunnelbench.study.wording import in_percent

_SHORT_RATE = 0.99
_LATE_SHARE = 0.01
_BUSY_SHARE = 0.95
_LONG_GAP_NS = 500_000_000
_CLOCK_STEP_NS = 100_000


def of_tcp(scene: Scene, sent: TcpSent, received: TcpReceived, clock_step: int) -> list[LoadWarning]:
    """The doubts about a TCP trial; `clock_step` is the larger of both ends', ns."""
    busiest = max(stream.processor for stream in received.streams)
    behind = 0 if sent.messages is None else sent.messages.behind
    common = [*_busy(scene, busiest), *_step(clock_step)]
    if received.messages is None:
        return [*common, *_gap(received.longest_gap)]
    # Messages have pauses of their own.
    return [*common, *_behind(behind), *_clocks(scene, received.messages.delay)]


def of_icmp(probed: Probed) -> list[LoadWarning]:
    """The doubts about a trial of echo requests."""
    if probed.skipped <= _LATE_SHARE * probed.sent:
        return []
    return [
        LoadWarning(
            "rate-not-reached",
            f"{probed.skipped} of {probed.sent + probed.skipped} echo requests were not sent in time",
            "The load generator is at its limit: lower the rate, or give it a processor of its own.",
        )
    ]


def of_transactions(transacted: Transacted) -> list[LoadWarning]:
    """The doubts about a trial of transactions."""
    if transacted.failures == 0:
        return []
    return [
        LoadWarning(
            "failed-transactions",
            f"{transacted.failures} attempts failed beside {transacted.transactions} transactions",
            "Each was tried again, which is in its time: see whether the tunnel loses packets.",
        )
    ]


def of_udp(scene: Scene, sent: UdpSent, received: UdpReceived, asked: SendMode) -> list[LoadWarning]:
    """The doubts about a UDP trial; `asked` is how the datagrams were to be handed to the system."""
    return [
        *_sender(sent),
        *_fallback(sent, asked),
        *_receiver(received),
        *_busy(scene, received.processor),
        *_gap(received.flow.longest_gap),
        *_step(max(sent.clock_step, received.clock_step, key=abs)),
        *_clocks(scene, received.flow.delay),
    ]


def _sender(sent: UdpSent) -> Iterator[LoadWarning]:
    if sent.asked_rate is not None and sent.achieved_rate < _SHORT_RATE * sent.asked_rate:
        yield LoadWarning(
            "rate-not-reached",
            f"{sent.achieved_rate / 1e6:.4g} Mbit/s were sent instead of {sent.asked_rate / 1e6:.4g}",
            "The load generator is at its limit: lower the rate, or give it a processor of its own.",
        )
    if sent.late > _LATE_SHARE * sent.measured.packets:
        yield LoadWarning(
            "late-departures",
            f"{sent.late} of {sent.measured.packets} datagrams left more than 1 ms late",
            "The latency includes this wait: lower the rate, or keep the machine free of other work.",
        )


def _fallback(sent: UdpSent, asked: SendMode) -> Iterator[LoadWarning]:
    if type(sent.mode) is not type(asked):
        yield LoadWarning(
            "sending-fell-back",
            f"the system took the datagrams {_NAMES[type(sent.mode)]} only, not {_NAMES[type(asked)]}",
            "Segmentation needs datagrams of one size that fit the MTU: compare this with its like only.",
        )


_NAMES: dict[type[SendMode], str] = {
    PerPacket: "one by one",
    Batched: "in batches",
    Segmented: "as segments",
}


def _busy(scene: Scene, processor: int) -> Iterator[LoadWarning]:
    share = processor / (scene.workload.measure_s * 1e9)
    if share >= _BUSY_SHARE:
        yield LoadWarning(
            "receiver-busy",
            f"the receiving thread was busy for {in_percent(share)} of the measured window",
            "The load generator is at its limit: use larger payloads or more streams, or lower the rate.",
        )


def _receiver(received: UdpReceived) -> Iterator[LoadWarning]:
    if received.buffer_drops > 0:
        yield LoadWarning(
            "receiver-drops",
            f"the receiver was too slow for {received.buffer_drops} datagrams, which count as lost",
            "This loss is not the tunnel's: lower the rate, or keep the machine free of other work.",
        )


def _behind(behind: int) -> Iterator[LoadWarning]:
    if behind >= _LONG_GAP_NS:
        yield LoadWarning(
            "messages-behind",
            f"at the end TCP was {behind / 1e9:.2g} s behind with the messages that were due",
            "The tunnel carries less than the profile sends: its delays are those of a queue that grows.",
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
            "clock-step",
            f"a node's clock was set by {clock_step / 1e6:.4g} ms during the trial",
            "One-way delays of this trial are wrong: let the clock settle before measuring.",
        )


def _clocks(scene: Scene, delay: Histogram | None) -> Iterator[LoadWarning]:
    uncertainty = scene.server_clock.uncertainty
    # At full speed, delays are those of full queues, and not what is asked.
    if uncertainty > 0 and scene.workload.rate != MAXIMUM:
        yield LoadWarning(
            "clock-offset",
            "the two ends have clocks of their own, so that one-way delays are right to within "
            f"{uncertainty / 1e6:.2g} ms",
            "Differences between delays below that mean nothing; loss, jitter and round trips are right.",
        )
    if delay is not None and delay.negative > 0:
        yield LoadWarning(
            "negative-delay",
            f"{delay.negative} datagrams arrived before they were due to leave, by the clocks",
            "The clocks are further apart than was found: trust loss, jitter and round trips alone.",
        )
