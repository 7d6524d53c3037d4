"""How numbers and places are written, the same in every table, figure and sentence."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tunnelbench.study.points import Point
from tunnelbench.study.wording import in_percent, point_title

NOTHING = "\N{EN DASH}"
"""What stands where there is no number."""

RUNTIME_TITLES = {
    "namespace": "gateways in namespaces",
    "kernel": "gateways in User Mode Linux kernels",
}


def printable(text: str) -> str:
    """The text with a replacement character for what can't be printed and might steer a terminal."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def number(value: float | None) -> str:
    """A number with about three significant digits, whole where it is 100 or more; a dash for None."""
    if value is None:
        return NOTHING
    size = abs(value)
    for limit, decimals in ((99.95, 0), (9.995, 1), (0.9995, 2), (0.00995, 3)):
        if size >= limit:
            return f"{value:.{decimals}f}"
    return f"{value:.2g}"


def milliseconds(value: float | None) -> str:
    """A time in ms as a number, no finer than a microsecond."""
    return number(value) if value is None or value >= 0.00995 else f"{value:.3f}"


def interval(low: float | None, high: float | None, text: Callable[[float], str] = number) -> str:
    """Both ends of an interval for a sentence, or a dash where it isn't known."""
    return NOTHING if low is None or high is None else f"{text(low)} to {text(high)}"


def compact_interval(low: float | None, high: float | None, text: Callable[[float], str] = number) -> str:
    """Both ends of an interval for a table, or a dash where it isn't known."""
    return NOTHING if low is None or high is None else f"{text(low)}\N{EN DASH}{text(high)}"


def percentage(ratio: float | None) -> str:
    """A ratio as a percentage with about three significant digits, no finer than a hundredth of one."""
    if ratio is None:
        return NOTHING
    if ratio in (0, 1):
        return f"{100 * ratio:.0f} %"
    if 0 < ratio < 0.00005:
        return "< 0.01 %"
    return f"{100 * ratio:.2f} %" if ratio < 0.00995 else f"{number(100 * ratio)} %"


def probability(p_value: float | None) -> str:
    """A p-value, no finer than it matters: `= 0.031` or `< 0.001`."""
    if p_value is None:
        return NOTHING
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.2g}"


def runtime_title(runtime: str | None) -> str:
    """Where the gateways ran, in words."""
    return NOTHING if runtime is None else RUNTIME_TITLES.get(runtime, runtime)


def family_title(point: Point) -> str:
    """A point in words without the size of its payload."""
    return point_title(point.model_copy(update={"payload_bytes": None}))


def point_slug(point: Point) -> str:
    """A point as a part of a file name."""
    words = re.sub(r" (profile|payload|rate)=", " ", point.key).replace(" ", "-")
    return re.sub(r"[^A-Za-z0-9.-]+", "_", words)


def some_of(names: Sequence[str], most: int = 3) -> str:
    """The first names of a list, and how many more there are."""
    shown = "; ".join(names[:most])
    return shown if len(names) <= most else f"{shown}; and {len(names) - most} more"


def interval_name(instances: int) -> str:
    """What an interval over so many instances may be called: few of them cannot promise 95 %."""
    # Here, since it brings scipy along, which takes seconds that commands with a figure or two don't have.
    from tunnelbench.analysis.intervals import attainable_confidence

    return f"{in_percent(min(0.95, attainable_confidence(instances)))} interval"
