"""What Linux said of the sending connections while they sent (TCP_INFO), all streams together."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence

from tunnelbench.lab.traffic import TcpSent
from tunnelbench.lab.traffic.tcp import Samples


def series(sent: TcpSent) -> dict[str, list[float]]:
    """Metric name to samples: of round trips (ms) the mean over the streams, of congestion windows (segments)
    and pacing rates (Mbit/s) the sum. NaN where a stream has no sample; what no stream has is absent."""
    streams = [stream.samples for stream in sent.streams]
    found = {
        "tcp_round_trip": _joined((stream.round_trip for stream in streams), statistics.fmean, 1e-6),
        "congestion_window": _joined((stream.congestion_window for stream in streams), sum, 1),
        "pacing_rate": _joined((stream.pacing_rate for stream in streams), sum, 1e-6),
    }
    return {name: samples for name, samples in found.items() if not all(map(math.isnan, samples))}


def mean_congestion_window(sent: TcpSent) -> float | None:
    """Segments, over the whole trial; None where it was never sampled."""
    known = [value for value in series(sent).get("congestion_window", []) if not math.isnan(value)]
    return statistics.fmean(known) if known else None


def _joined(streams: Iterable[Samples], join: Callable[[Sequence[int]], float], unit: float) -> list[float]:
    return [
        math.nan if None in values else join([value for value in values if value is not None]) * unit
        for values in zip(*streams, strict=True)
    ]
