"""One mean difference between things measured in the same rounds, with its interval, test and effect size.

Differences are of logarithms: what a VPN costs multiplies, a round's luck multiplies too and cancels, and the
geometric mean of ratios is the same whichever way round they are taken. Student's paired t test, and not
Wilcoxon's or the sign test, because these can't reach 5 % with fewer than six rounds, whatever the data; the
mean over an instance's seconds, in logarithms, is close enough to normal for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special  # pyright: ignore[reportMissingTypeStubs]

from tunnelbench.analysis.intervals import CONFIDENCE


@dataclass(frozen=True)
class Difference:
    """A mean difference over rounds, in logarithms."""

    n: int
    """Rounds."""
    mean: float
    standard_deviation: float | None
    """From round to round; None for one round."""

    @property
    def ratio(self) -> float:
        """The geometric mean of the ratios."""
        return math.exp(self.mean)

    @property
    def p_value(self) -> float | None:
        """Of a mean as far from zero, where there is no difference; None for one round."""
        if self.standard_deviation is None:
            return None
        return 2 * self.p_above(0.0) if self.mean > 0 else 2 * (1 - self.p_above(0.0))

    def p_above(self, bound: float) -> float:
        """Of a mean so far above the bound, where the truth is the bound. Needs two rounds."""
        if not self.standard_deviation:
            return 0.5 if self.mean == bound else float(self.mean < bound)
        t = (self.mean - bound) / (self.standard_deviation / math.sqrt(self.n))
        return float(special.stdtr(self.n - 1, -t))

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
        """Student's interval of the ratio; None for one round."""
        if self.standard_deviation is None:
            return None
        quantile = float(special.stdtrit(self.n - 1, (1 + confidence) / 2))
        half = quantile * self.standard_deviation / math.sqrt(self.n)
        return math.exp(self.mean - half), math.exp(self.mean + half)

    @property
    def effect_size(self) -> float | None:
        """Hedges' g of paired differences: mean / standard deviation, corrected for few rounds.

        L. V. Hedges, Journal of Educational Statistics 6, 1981. Of paired differences, because the plan pairs
        by round and because it is the number on which the rounds needed depend. None for one round, or where
        nothing varies.
        """
        if not self.standard_deviation:
            return None
        freedom = self.n - 1
        correction = (
            math.exp(math.lgamma(freedom / 2) - 0.5 * math.log(freedom / 2) - math.lgamma((freedom - 1) / 2))
            if freedom > 1
            else 1 - 3 / (4 * freedom - 1)
        )
        return self.mean / self.standard_deviation * correction


def difference(differences: ArrayLike) -> Difference:
    """Of the differences of logarithms of one value a round. Raises ValueError where there is none."""
    values = np.asarray(differences, dtype=np.float64)
    if values.size == 0:
        raise ValueError("no round to take a difference from")
    spread = float(values.std(ddof=1)) if values.size > 1 else None
    mean = float(values.mean())
    # Equal differences may still differ by rounding.
    if spread is not None and spread <= 1e-13 * max(1.0, abs(mean)):
        spread = 0.0
    return Difference(int(values.size), mean, spread)
