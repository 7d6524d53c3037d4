"""What arrived of a flow of datagrams."""

from __future__ import annotations

from tunnelbench.lab.traffic.common import Histogram, Message, Tally


class LossBursts(Message, frozen=True, kw_only=True):
    """Runs of lost datagrams, between the lowest and the highest number of those that were measured."""

    expected: int
    """Numbers from the lowest to the highest."""
    lost: int
    """Of those, missing in the end."""
    bursts: int
    """Runs of consecutive missing numbers."""
    mean: float | None
    """Their mean length; None where nothing was lost."""
    longest: int
    ratio: float | None
    """BurstR of ITU-T G.107: the mean length by that of independent losses of the same ratio."""


class DelayVariation(Message, frozen=True, kw_only=True):
    """By how much a datagram's delay exceeds that of the one sent before it."""

    absolute: Histogram
    """The absolute values."""
    negative: int
    """How many values are negative."""
    mean: float
    """With the sign, ns."""
    min: int
    """ns."""
    max: int
    """ns."""


class FlowSeries(Message, frozen=True, kw_only=True):
    """Unique datagrams by their arrival, in equal steps from the start of the schedule to its end."""

    step: int
    """ns."""
    bytes: list[int]
    packets: list[int]
    lost: list[int]
    """The gaps in the sequence that showed in each step; negative where latecomers fill earlier ones."""
    delay_min: list[int | None]
    """ns."""
    delay_mean: list[float | None]
    """ns."""
    delay_max: list[int | None]
    """ns."""
    jitter: list[float | None]
    """RFC 3550, at the end of each step, ns."""


class FlowReport(Message, frozen=True, kw_only=True):
    """What arrived, and how; loss is `1 - flow.measured.packets / sent.measured.packets`."""

    measured: Tally
    """Unique datagrams whose intended time lies in the measured window, whenever they arrived."""
    duplicates: int
    """Further copies of those (RFC 5560)."""
    reordered: int
    """Of `measured`, type-P-reordered (RFC 4737)."""
    reordering_extent: Histogram | None
    """How many arrivals ago the first with a higher number came (RFC 4737); None where none was reordered."""
    late_time_offset: Histogram | None
    """How long ago that was (RFC 4737)."""
    extent_unknown: int
    """Of `reordered`, those that came after too many further gaps for their extent to be known."""
    beyond_window: int
    """So far behind the newest that duplicates can't be told; in no other count but `total`."""
    loss: LossBursts
    jitter_last: float | None
    """Inter-arrival jitter (RFC 3550) at the end, ns."""
    jitter_mean: float | None
    """Its mean over all arrivals, ns."""
    delay: Histogram | None
    """Arrival minus intended departure (RFC 7679); None where nothing arrived."""
    ipdv: DelayVariation | None
    """Of neighbours in the sequence (RFC 3393); None where no two of them arrived."""
    pdv: Histogram | None
    """Delay minus the smallest delay (RFC 5481)."""
    arrived: Tally
    """Unique datagrams by arrival in the measured window."""
    series: FlowSeries
    longest_gap: int
    """The longest time in the measured window without an arrival, ns."""
    total: Tally
    """Of the flow in all phases, duplicates included."""
