"""The statistics of a campaign, made of one point after another, so that a large one needs little memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars

from tunnelbench.analysis.checks import merged, warnings_about
from tunnelbench.analysis.frames import CELL, POINT, TREATMENT, instance_values
from tunnelbench.analysis.groups import groups
from tunnelbench.analysis.ranked import LESS_IS_BETTER, RANKED_BY
from tunnelbench.analysis.summary import summarise
from tunnelbench.analysis.warnings import MeasurementWarning
from tunnelbench.store.read import CampaignData
from tunnelbench.study.points import Question

LEVELS = (*TREATMENT, *POINT)
_PARTS = ("user", "system", "softirq")
_SWITCHES = ("voluntary_switches", "involuntary_switches")
_MEANS_OF = ("throughput", "latency_p50", "jitter")
"""Metrics of which papers give means, beside what answers at a point."""
_FIXED_BY_RATE = ("throughput", "offered", "packets_per_second")
"""Metrics that a fixed rate makes all but equal for every tunnel."""


@dataclass(frozen=True)
class Numbers:
    """What a report is made of."""

    summary: polars.DataFrame
    """As `summarise` makes it, of every metric; without ratios that a fixed rate makes idle."""
    processor: polars.DataFrame
    """The same of processor time: `metric` is the node."""
    switches: polars.DataFrame
    """The columns of a cell, node, and `value`: median context switches per second."""
    queued: polars.DataFrame
    """The same of the time on run queues, seconds per second."""
    system_calls: polars.DataFrame
    """The same of system calls per packet on the wire."""
    statuses: polars.DataFrame
    """LEVELS and status, each combination that a trial had."""
    typical: polars.DataFrame
    """The columns of a cell and `trial`: the one whose answer is nearest to the cell's median."""
    warnings: tuple[MeasurementWarning, ...]
    tiers: polars.DataFrame
    """As `analysis.groups` makes them, of what answers at each point."""
    answers: polars.DataFrame
    """As `instance_values` makes them, of what answers at each point."""
    kept: polars.DataFrame
    """The trials with the metrics that were to be kept."""


def numbers_of(data: CampaignData, keep: Sequence[str] = ()) -> Numbers:
    """All statistics of a campaign, which may be empty; and its trials with a few metrics."""
    points = [_numbers(one.point.question, one.trials, one.node_costs, keep) for one in data.by_point()]
    points = points or [_numbers("throughput", data.trials(), data.node_costs(), keep)]
    return Numbers(
        summary=polars.concat([one.summary for one in points]),
        processor=polars.concat([one.processor for one in points]),
        switches=polars.concat([one.switches for one in points]),
        queued=polars.concat([one.queued for one in points]),
        system_calls=polars.concat([one.system_calls for one in points]),
        statuses=polars.concat([one.statuses for one in points]),
        typical=polars.concat([one.typical for one in points]),
        warnings=merged(warning for one in points for warning in one.warnings),
        tiers=polars.concat([one.tiers for one in points]),
        answers=polars.concat([one.answers for one in points]),
        kept=polars.concat([one.kept for one in points]),
    )


def processor_totals(node_costs: polars.DataFrame) -> polars.DataFrame:
    """Node costs in the shape of trials: metric is the node, value all its processor seconds per second."""
    field, value = polars.col("field"), polars.col("value")
    keys = [column for column in node_costs.columns if column not in ("field", "value")]
    sums = node_costs.group_by(keys, maintain_order=True).agg(
        total=value.filter(field == "total").first(), parts=value.filter(field.is_in(_PARTS)).sum()
    )
    totals = sums.with_columns(value=polars.coalesce("total", "parts")).drop("total", "parts")
    return totals.rename({"node": "metric"})


def without_idle_ratios(summary: polars.DataFrame, question: Question) -> polars.DataFrame:
    """A summary without ratios of what a fixed rate fixes: they would only say that the datagrams arrived."""
    if question != "delay":
        return summary
    ratio = polars.when(~polars.col("metric").is_in(_FIXED_BY_RATE))
    return summary.with_columns(
        ratio.then(polars.col(name)).alias(name) for name in ("ratio", "ratio_low", "ratio_high")
    )


def _numbers(
    question: Question, trials: polars.DataFrame, node_costs: polars.DataFrame, keep: Sequence[str]
) -> Numbers:
    metric = RANKED_BY[question]
    summary = summarise(trials, means_of={metric, *_MEANS_OF})
    answers = instance_values(trials.filter(polars.col("metric") == metric))
    return Numbers(
        summary=without_idle_ratios(summary, question),
        processor=summarise(processor_totals(node_costs), means_of=()),
        switches=_per_node(node_costs, _SWITCHES),
        queued=_per_node(node_costs, ("queued",)),
        system_calls=_per_node(node_costs, ("system_calls_per_packet",)),
        statuses=trials.select(*LEVELS, "status").unique(),
        typical=_typical(trials, metric),
        warnings=warnings_about(trials, summary),
        tiers=groups(answers, metric, less_is_better=metric in LESS_IS_BETTER),
        answers=answers,
        kept=trials.filter(polars.col("metric").is_in(list(keep))),
    )


def _per_node(node_costs: polars.DataFrame, fields: Sequence[str]) -> polars.DataFrame:
    """Medians over instances of the sum of some fields."""
    counts = node_costs.filter(polars.col("field").is_in(list(fields)))
    of_trials = counts.group_by("instance", "trial", *CELL, "node").agg(polars.col("value").sum())
    of_instances = of_trials.group_by("instance", *CELL, "node").agg(polars.col("value").mean())
    return of_instances.group_by(*CELL, "node").agg(polars.col("value").median())


def _typical(trials: polars.DataFrame, metric: str) -> polars.DataFrame:
    value = polars.col("value")
    answers = trials.filter(polars.col("metric") == metric)
    nearest = (value - value.median()).abs().arg_min()
    return answers.group_by(CELL, maintain_order=True).agg(polars.col("trial").get(nearest))
