"""What all rate searches share: the measurement that is handed in, and a record of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Measure(Protocol):
    """Sends at a rate for a while and says what was lost."""

    async def __call__(self, rate: float, seconds: float) -> float:
        """Sends `rate` bits per second for `seconds`; gives lost by sent (ratio, 0 to 1).

        What the sender could not send counts as lost, or a slow generator passes for a fast system.
        """
        ...


class Ending(StrEnum):
    """Why a search ended."""

    FOUND = "found"
    """The limit lies between two rates that were measured, as close as was asked."""
    HIGHEST_RATE = "highest rate"
    """The highest rate of the search meets the goal: the limit lies there or above."""
    LOWEST_RATE = "lowest rate"
    """The lowest rate of the search fails the goal: the limit lies below, and there is no result."""
    MOST_TRIALS = "most trials"
    """As many trials as were allowed were not enough."""


@dataclass(frozen=True, slots=True)
class Trial:
    """One measurement of a search."""

    rate: float
    """Bits per second."""
    seconds: float
    """How long was sent."""
    loss: float
    """Lost by sent (ratio)."""


async def run_trial(measure: Measure, rate: float, seconds: float) -> Trial:
    """Measures once; raises ValueError where the loss is no ratio, for no search can go on from there."""
    loss = await measure(rate, seconds)
    if not 0 <= loss <= 1:
        raise ValueError(f"the loss at {rate:g} bit/s was measured as {loss}, which is no ratio from 0 to 1")
    return Trial(rate, seconds, loss)


def require(condition: bool, message: str) -> None:
    """Raises ValueError with the message for settings that make no search."""
    if not condition:
        raise ValueError(message)
