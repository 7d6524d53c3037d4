"""Numbers and contrasts in words."""

from __future__ import annotations

from tunnelbench.analysis.findings.contrast import Contrast
from tunnelbench.analysis.findings.verdict import Detail
from tunnelbench.analysis.paired import Difference
from tunnelbench.study.wording import metric_words


def said(found: Contrast, metric: str, where: str = "") -> str:
    """`the throughput with ipsec is 1.74 times that with openvpn (1.70 to 1.78)`, and where that is.

    It never begins with a name, which a sentence would have to capitalise.
    """
    ratio = number(found.difference.ratio)
    relative = " relative to plain IP" if found.is_relative else ""
    place = f"for {where}, " if where else ""
    return (
        f"{place}the {metric_words(metric)} with {found.first}{relative} is {ratio} times "
        f"that with {found.second} ({within(found.difference)}{_agreement(found)})"
    )


def within(found: Difference) -> str:
    """The interval of a ratio; what there is instead for one round."""
    interval = found.interval()
    if interval is None:
        return "one round, no interval"
    return f"{number(interval[0])} to {number(interval[1])}"


def detail(label: str, found: Difference, published: float | None = None) -> Detail:
    """A geometric mean, or a ratio, with its interval."""
    interval = found.interval()
    low, high = interval if interval is not None else (None, None)
    return Detail(label, found.ratio, low, high, found.n, published)


def number(value: float) -> str:
    """Three digits, or all before the point."""
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def _agreement(found: Contrast) -> str:
    if found.conditions == 1:
        return ""
    if found.agreeing == found.conditions:
        return f"; so in all {found.conditions} conditions"
    return f"; so in {found.agreeing} of {found.conditions} conditions"
