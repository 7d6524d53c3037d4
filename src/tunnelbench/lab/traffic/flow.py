"""What arrived of a flow of datagrams."""

from __future__ import annotations

from tunnelbench.lab.traffic.common import Histogram, Message, Series, Tally


class FlowReport(Message, frozen=True, kw_only=True):
    """What arrived, and how; loss is `1 - flow.measured.packets / sent.measured.packets`."""

    measured: Tally
    """Unique datagrams whose intended time lies in the measured window, whenever they arrived."""
    duplicates: int
    """Further copies of those (RFC 5560)."""
    reordered: int
    """Of `measured`, type-P-reordered (RFC 4737)."""
    beyond_window: int
    """So far behind the newest that duplicates can't be told; in no other count but `total`."""
    jitter_last: float | None
    """Inter-arrival jitter (RFC 3550) at the end, ns."""
    jitter_mean: float | None
    """Its mean over all arrivals, ns."""
    delay: Histogram | None
    """Arrival minus intended departure (RFC 7679); None where nothing arrived."""
    arrived: Tally
    """Unique datagrams by arrival in the measured window."""
    series: Series
    longest_gap: int
    """The longest time in the measured window without an arrival, ns."""
    total: Tally
    """Of the flow in all phases, duplicates included."""
