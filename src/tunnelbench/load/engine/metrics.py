"""Outcomes of the engine as metrics, in the units of metrics."""

from __future__ import annotations

from collections.abc import Mapping

from tunnelbench.lab.traffic import FlowReport, FlowSeries, Histogram, Series

QUANTILES = ("p50", "p90", "p99", "p999", "max")

OF_FLOWS = frozenset(
    {
        "duplicates",
        "reordering",
        "jitter",
        "jitter_last",
        "packets_per_second",
        *(f"latency_{quantile}" for quantile in QUANTILES),
        *("ipdv_p50", "ipdv_p99", "pdv_p50", "pdv_p99", "pdv_p999"),
        *("reordering_extent_max", "loss_burst_mean", "arrival_gap_max"),
    }
)
"""What is known of every flow of numbered packets."""


def of_flow(flow: FlowReport, seconds: float) -> dict[str, float]:
    """The metrics of what arrived of a flow in a window of so many seconds.

    What there is only where enough arrived, something was reordered or something was lost, may be absent.
    """
    measured = flow.measured.packets
    metrics = {
        "duplicates": flow.duplicates / measured,
        "reordering": flow.reordered / measured,
        "packets_per_second": flow.arrived.packets / seconds,
        "arrival_gap_max": flow.longest_gap / 1e6,
    }
    if flow.delay is not None:
        metrics |= quantiles("latency", flow.delay)
    if flow.jitter_mean is not None and flow.jitter_last is not None:
        metrics |= {"jitter": flow.jitter_mean / 1e6, "jitter_last": flow.jitter_last / 1e6}
    if flow.ipdv is not None:
        metrics |= quantiles("ipdv", flow.ipdv.absolute, "p50", "p99")
    if flow.pdv is not None:
        metrics |= quantiles("pdv", flow.pdv, "p50", "p99", "p999")
    if flow.reordering_extent is not None:
        metrics["reordering_extent_max"] = flow.reordering_extent.max
    if flow.loss.mean is not None:
        metrics["loss_burst_mean"] = flow.loss.mean
    return metrics


def histograms_of_flow(flow: FlowReport) -> dict[str, Histogram | None]:
    """The distributions of what arrived of a flow."""
    return {"latency": flow.delay, "ipdv": flow.ipdv and flow.ipdv.absolute, "pdv": flow.pdv}


def quantiles(name: str, times: Histogram, *which: str) -> dict[str, float]:
    """Quantiles of times, in ms; all of `QUANTILES` where none are named."""
    return {f"{name}_{quantile}": getattr(times, quantile) / 1e6 for quantile in which or QUANTILES}


def encoded(histograms: Mapping[str, Histogram | None]) -> dict[str, bytes]:
    """Those distributions that there are."""
    return {name: histogram.encoded for name, histogram in histograms.items() if histogram is not None}


def throughput(series: Series | FlowSeries) -> list[float]:
    """Mbit/s in each step."""
    return [count * 8e3 / series.step for count in series.bytes]
