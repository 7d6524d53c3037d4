"""Which of our values a finding is about, and which of them stand for a level that it names."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import polars as pl

from tunnelbench.analysis.frames import CELL, TRIALS
from tunnelbench.analysis.ratio import with_ratio
from tunnelbench.study.correspondence import Correspondence, Selection
from tunnelbench.study.published import At, Level, Published
from tunnelbench.study.treatment import BASELINE_VPN
from tunnelbench.study.wording import level_name, level_words, metric_words

OURS = {"latency": "latency_p50", "round_trip": "round_trip_p50"}
"""Our metric for one of the papers', where its name differs: their means of delays by our medians."""

LESS_IS_BETTER = frozenset({"latency", "jitter", "round_trip", "loss_percent"})

UNITS = {"throughput": "Mbit/s", "latency": "ms", "jitter": "ms", "round_trip": "ms", "loss_percent": "%"}

_NAMES = tuple(name for name in (*CELL, "metric") if TRIALS[name] == pl.String)
"""Columns of words; as categories they are grouped and compared faster."""

METRICS = ("throughput", "capacity", "jitter", "loss", *OURS.values())
"""Metrics of ours that findings and values of papers are about."""

_TRANSACTIONS = ("request-response", "connect-request-response")


class NotTestableError(Exception):
    """The campaign has nothing that a finding could be held against; the message is the reason."""


@dataclass(frozen=True)
class Scope:
    """The values of one metric that a finding is about: one row per instance and cell."""

    paper: Published
    correspondence: Correspondence
    metric: str
    """As the paper calls it."""
    values: pl.DataFrame
    """Columns of `frames.CELL`, `campaign_round`, `instance`, `value` above zero, `ratio`."""

    @property
    def less_is_better(self) -> bool:
        return self.metric in LESS_IS_BETTER

    @property
    def unit(self) -> str:
        return UNITS.get(self.metric, "")

    def selection(self, factor: str, level: Level) -> Selection:
        """What stands for a level. Raises NotTestableError where nothing does."""
        found = self.correspondence.selection(factor, level)
        if found is None:
            raise NotTestableError(
                self.with_note(f"nothing here stands for {level_words(factor, level)}", factor)
            )
        return found

    def with_note(self, text: str, factor: str) -> str:
        """A text, and after it what the study notes of what stands for a factor."""
        note = self.correspondence.notes.get(factor)
        return f"{text}: {note}" if note else text

    def having(self, levels: At) -> pl.DataFrame:
        """The values at some levels. Raises NotTestableError where there are none."""
        found = self.values
        for factor, names in levels.items():
            found = found.filter(any_of([self.selection(factor, name) for name in names]))
        if found.is_empty():
            raise NotTestableError(f"no {metric_words(self.metric)} was measured at {written(levels)}")
        return found

    def columns(self, factors: Iterable[str]) -> frozenset[str]:
        """The columns by which levels of factors differ here."""
        found: set[str] = set()
        for factor in factors:
            for level in self.paper.levels_of(factor):
                found |= set(self.correspondence.selection(factor, level) or ())
        return frozenset(found)

    def levels(self, factor: str) -> tuple[Level, ...]:
        """Levels of the paper's design that were measured here, without plain IP.

        Where the design doesn't name the factor, those that its findings name, or to which something here
        corresponds.
        """
        listed = self.correspondence.levels.get(factor, ())
        named = tuple(dict.fromkeys([*self.paper.levels_of(factor), *listed]))
        names = self.paper.factors.get(factor, named)
        return tuple(name for name in names if self.has(factor, name) and not self._is_plain(factor, name))

    def has(self, factor: str, level: Level) -> bool:
        """Whether something that stands for a level was measured."""
        found = self.correspondence.selection(factor, level)
        return found is not None and not self.values.filter(matches(found)).is_empty()

    def narrowed(self, levels: At) -> Scope:
        """Only the values at some levels. Raises NotTestableError where there are none."""
        return self.of(self.having(levels))

    def of(self, values: pl.DataFrame) -> Scope:
        """The same of other values."""
        return Scope(self.paper, self.correspondence, self.metric, values)

    def without_plain_ip(self) -> Scope:
        """Only tunnels."""
        return self.of(self.values.filter(pl.col("vpn") != BASELINE_VPN))

    def _is_plain(self, factor: str, level: Level) -> bool:
        found = self.correspondence.selection(factor, level) or {}
        return tuple(found.get("vpn", ())) == (BASELINE_VPN,)


def observed(values: pl.DataFrame) -> pl.DataFrame:
    """Instance values with their ratios, of the metrics that papers speak of, from `frames.instance_values`.

    What judges findings and answers questions starts from this.
    """
    needed = values.filter(pl.col("metric").is_in(METRICS))
    return with_ratio(needed.with_columns(pl.col(*_NAMES).cast(pl.Categorical)))


def scope(
    values: pl.DataFrame,
    paper: Published,
    correspondence: Correspondence,
    metric: str,
    at: At,
    claimed: Collection[str] = (),
) -> Scope:
    """What of `observed` values a claim on a metric is about.

    That is what stands for the paper's own levels: at those named in `at`; at the paper's defaults of factors
    neither in `at` nor in `claimed`, those that the claim itself varies; all levels of the rest. Ciphers hold
    for what has one: conditions on the suite don't touch plain encapsulations, unless VPNs aren't compared.
    Raises NotTestableError where nothing is left.
    """
    found = Scope(paper, correspondence, metric, of_metric(values, metric))
    if found.values.is_empty():
        raise NotTestableError(f"no {metric_words(metric)} was measured")
    kept = found.values.filter(_of_the_paper(paper, correspondence))
    for factor, level in paper.defaults.items():
        default = correspondence.selection(factor, level)
        if factor not in at and factor not in claimed and default is not None:
            kept = kept.filter(_or_without_cipher(matches(default), default))
    compares_vpns = "vpn" in found.columns(claimed)
    for factor, levels in at.items():
        selections = [found.selection(factor, level) for level in levels]
        expression = any_of(selections)
        if compares_vpns and any("suite" in one for one in selections):
            expression |= pl.col("suite") == "none"
        kept = kept.filter(expression)
    if kept.is_empty():
        raise NotTestableError(
            f"no {metric_words(metric)} was measured" + (f" at {written(at)}" if at else "")
        )
    return found.of(kept)


def matches(selection: Selection) -> pl.Expr:
    """Rows that a selection selects."""
    return pl.all_horizontal([pl.col(column).is_in(list(allowed)) for column, allowed in selection.items()])


def any_of(selections: Iterable[Selection]) -> pl.Expr:
    """Rows that any of some selections selects."""
    return pl.any_horizontal([matches(selection) for selection in selections])


def written(levels: At) -> str:
    """Levels in words: `cipher des or aes, transport tcp`."""
    return ", ".join(
        level_words(factor, " or ".join(map(level_name, names))) for factor, names in levels.items()
    )


def of_metric(values: pl.DataFrame, metric: str) -> pl.DataFrame:
    """The values of a paper's metric.

    Throughput is that of bulk TCP and of UDP as fast as it goes, or UDP's capacity where that was searched
    for. Delays are of UDP at a fixed rate where there is any: at full speed they tell the length of a queue.
    """
    name = pl.col("metric")
    if metric != "throughput":
        ours = values.filter(name == OURS.get(metric, metric.removesuffix("_percent")))
        ours = ours.filter(pl.col("value") > 0) if metric != "loss_percent" else ours
        at_a_rate = ours.filter((pl.col("transport") != "udp") | pl.col("rate").ne_missing("max"))
        has_rate = not at_a_rate.filter(pl.col("transport") == "udp").is_empty()
        return at_a_rate if has_rate else ours
    capacity = values.filter(name == "capacity")
    at_most = (pl.col("rate").is_null() | (pl.col("rate") == "max")) & ~pl.col("profile").is_in(_TRANSACTIONS)
    plain = values.filter((name == "throughput") & at_most & (pl.col("profile") == "constant"))
    if not capacity.is_empty():
        plain = plain.filter(pl.col("transport") != "udp")
    return pl.concat([plain, capacity]).filter(pl.col("value") > 0)


def _of_the_paper(paper: Published, correspondence: Correspondence) -> pl.Expr:
    expressions = [pl.lit(True)]
    named: set[str | int] = set()
    for factor, levels in paper.factors.items():
        selections = [found for level in levels if (found := correspondence.selection(factor, level))]
        if selections:
            both = any_of(selections)
            if any("suite" in one for one in selections):
                both |= pl.col("suite") == "none"
            expressions.append(both)
        named |= {vpn for one in selections for vpn in one.get("vpn", ())}
    if BASELINE_VPN not in named:
        expressions.append(pl.col("vpn") != BASELINE_VPN)
    return pl.all_horizontal(expressions)


def _or_without_cipher(expression: pl.Expr, selection: Selection) -> pl.Expr:
    return expression | (pl.col("suite") == "none") if "suite" in selection else expression
