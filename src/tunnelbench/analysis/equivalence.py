"""Whether two things are equal for all that matters: two one-sided tests.

D. J. Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15, 1987. That no difference is found is no
sign that there is none; that one as large as the margin is excluded on both sides is.
"""

from __future__ import annotations

import math

from tunnelbench.analysis.paired import Difference


def equivalence_p_value(found: Difference, margin: float) -> float:
    """Small if the ratio is shown to be between 1 / (1 + margin) and 1 + margin.

    The larger of the p-values of both one-sided t tests; 1 for one round. A margin of 0.15 is 15 %.
    """
    if found.standard_deviation is None:
        return 1.0
    edge = math.log1p(margin)
    return max(found.p_above(-edge), 1 - found.p_above(edge))
