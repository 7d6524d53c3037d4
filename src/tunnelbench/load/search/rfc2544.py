"""Throughput of RFC 2544, section 26.1: the fastest rate at which nothing is lost, by binary search.

The RFC has the rate raised after a trial without loss and lowered after one with loss, and wants trials of at
least 60 s (section 24). Each rate is tried once, so one chance loss moves the result for good.
"""

from __future__ import annotations

from dataclasses import dataclass

from tunnelbench.load.search.base import Ending, Measure, Trial, require, run_trial


@dataclass(frozen=True, slots=True, kw_only=True)
class BinarySearch:
    """Settings."""

    highest_rate: float
    """Upper end of the search, bits per second: tried first."""
    lowest_rate: float
    """Lower end of the search, bits per second: tried second."""
    resolution: float
    """The search ends when the limit is known to so many bits per second..."""
    width: float = 0.0
    """...or to such a share of itself."""
    trial_s: float = 60.0
    """Length of a trial, seconds."""
    loss_goal: float = 0.0
    """The most loss (ratio) with which a trial passes; over 0 it is no longer the RFC's throughput."""

    def __post_init__(self) -> None:
        """Raises ValueError for settings that make no search."""
        require(
            0 < self.lowest_rate < self.highest_rate, "the lowest rate must be over 0 and below the highest"
        )
        # Below this, the middle of two rates may be one of them.
        require(self.resolution >= 1e-12 * self.highest_rate, "the resolution is finer than numbers are")
        require(self.trial_s > 0, "a trial must last longer than 0 s")
        require(0 <= self.loss_goal < 1, "the loss goal must be at least 0 and below 1")
        require(0 <= self.width < 1, "the width must be at least 0 and below 1")


@dataclass(frozen=True, slots=True)
class BinaryResult:
    """What the search found."""

    rate: float | None
    """The fastest rate that passed, bits per second; None where even the lowest failed."""
    failed_rate: float | None
    """The slowest rate that failed, bits per second; None where even the highest passed."""
    ending: Ending
    trials: tuple[Trial, ...]
    """Everything that was measured, in order."""


async def search(measure: Measure, settings: BinarySearch) -> BinaryResult:
    """Halves the interval between a rate that passes and one that fails until it is small enough."""
    trials: list[Trial] = []

    async def passes(rate: float) -> bool:
        trials.append(await run_trial(measure, rate, settings.trial_s))
        return trials[-1].loss <= settings.loss_goal

    passed, failed = settings.lowest_rate, settings.highest_rate
    if await passes(failed):
        return BinaryResult(failed, None, Ending.HIGHEST_RATE, tuple(trials))
    if not await passes(passed):
        return BinaryResult(None, passed, Ending.LOWEST_RATE, tuple(trials))
    while failed - passed > max(settings.resolution, settings.width * failed):
        middle = (passed + failed) / 2
        if await passes(middle):
            passed = middle
        else:
            failed = middle
    return BinaryResult(passed, failed, Ending.FOUND, tuple(trials))
