"""How many rounds a difference needs to be found.

The power of the two-sided paired t test by the noncentral t distribution (J. Cohen, Statistical Power
Analysis for the Behavioral Sciences, 2nd edition, 1988, section 2.3).
"""

from __future__ import annotations

import math

from scipy import special  # pyright: ignore[reportMissingTypeStubs]

POWER = 0.8
"""The share of campaigns that would find it."""
SIGNIFICANCE = 0.05
MOST_ROUNDS = 10_000


def power_of(effect_size: float, rounds: int, significance: float = SIGNIFICANCE) -> float:
    """The probability that so many rounds find a difference of `effect_size` standard deviations."""
    if rounds < 2:
        return 0.0
    noncentrality = abs(effect_size) * math.sqrt(rounds)
    critical = float(special.stdtrit(rounds - 1, 1 - significance / 2))
    above = 1 - float(special.nctdtr(rounds - 1, noncentrality, critical))
    below = float(special.nctdtr(rounds - 1, noncentrality, -critical))
    return above if math.isnan(below) else above + below  # so far out that scipy can't tell it from nothing


def rounds_needed(
    difference: float, standard_deviation: float, power: float = POWER, significance: float = SIGNIFICANCE
) -> int | None:
    """The fewest rounds in all that find a mean difference which varies so from round to round.

    None where there is no difference to find, or where it would take more than MOST_ROUNDS.
    """
    if difference == 0:
        return None
    if standard_deviation == 0:
        return 2
    effect = difference / standard_deviation
    if power_of(effect, MOST_ROUNDS, significance) < power:
        return None
    low, high = 1, MOST_ROUNDS
    while high - low > 1:
        middle = (low + high) // 2
        if power_of(effect, middle, significance) >= power:
            high = middle
        else:
            low = middle
    return high
