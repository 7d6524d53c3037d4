"""The statistics of one point, made with small integers for levels: a treatment in a runtime is a `place`.

Grouping by all columns of levels would take most of the time of a large campaign's report, so rows get their
levels last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars
from numpy.typing import NDArray

from tunnelbench.analysis.checks import warnings_about
from tunnelbench.analysis.frames import CELL, LAB, POINT, TREATMENT, TRIALS
from tunnelbench.analysis.groups import tiers_of
from tunnelbench.analysis.observations import Matrix
from tunnelbench.analysis.ranked import LESS_IS_BETTER, RANKED_BY
from tunnelbench.analysis.summary import summarise_values
from tunnelbench.analysis.warnings import MeasurementWarning
from tunnelbench.store.read import OnePoint
from tunnelbench.study.points import Question
from tunnelbench.study.treatment import BASELINE_VPN

LEVELS = (*TREATMENT, *POINT)
VALUES = ("campaign_round", "instance", *CELL, "metric", "value", "n_trials")
"""Columns of instance values."""
WORDS = tuple(name for name in (*CELL, "metric") if TRIALS[name] == polars.String)
"""Those of words; as categories they take a quarter of the memory."""
_PARTS = ("user", "system", "softirq")
_SWITCHES = ("voluntary_switches", "involuntary_switches")
_MEANS_OF = ("throughput", "latency_p50", "jitter")
"""Metrics of which papers give means, beside what answers at a point."""
_FIXED_BY_RATE = ("throughput", "offered", "packets_per_second")
"""Metrics that a fixed rate makes all but equal for every tunnel."""
_PAIRING = ("campaign_round", "lab", "metric")

Matrices = NDArray[np.float64]


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
    """As `instance_values` makes them, words as categories, of what answers at each point."""
    kept: polars.DataFrame
    """The same of the metrics that were to be kept."""


def numbers_of_point(one: OnePoint, keep: Collection[str] = ()) -> Numbers:
    """All statistics of one point, and its instance values of a few metrics."""
    question = one.point.question
    metric = RANKED_BY[question]
    names = [name for (name,) in one.metrics.names]
    measured = one.metrics.of(one.outline["trial"])
    spent = one.costs.of(one.outline["trial"])
    values = _instance_values(one, names, measured)
    answers = values.filter(polars.col("metric") == metric)
    summary = _summary(one, values, {metric, *_MEANS_OF})
    statuses = one.outline.select("place", "status").unique(maintain_order=True)
    return Numbers(
        summary=without_idle_ratios(summary, question),
        processor=_summary(one, _instance_values(one, *processor_totals(one.costs.names, spent)), ()),
        switches=_per_node(one, spent, _SWITCHES),
        queued=_per_node(one, spent, ("queued",)),
        system_calls=_per_node(one, spent, ("system_calls_per_packet",)),
        statuses=one.levels(statuses).select(*LEVELS, "status"),
        typical=_typical(one, metric, names, measured),
        warnings=warnings_about(
            _in_words(one, _without_baseline(values)),
            _in_words(one, answers.filter(polars.col("vpn") == BASELINE_VPN)),
            summary,
        ),
        tiers=tiers_of(_matrices(one, answers), less_is_better=metric in LESS_IS_BETTER),
        answers=_as_categories(one, answers),
        kept=_as_categories(one, values.filter(polars.col("metric").is_in(list(keep)))),
    )


def processor_totals(names: Sequence[Sequence[str]], values: Matrices) -> tuple[list[str], Matrices]:
    """Nodes, and `[trial, node]`: all processor seconds per second, from `[trial, (node, field)]`.

    That is the total where there is one, and otherwise the sum of the parts; NaN where there is nothing.
    """
    nodes = sorted({node for node, _ in names})
    totals = np.full((len(values), len(nodes)), np.nan)
    for column, node in enumerate(nodes):
        fields = {field: values[:, place] for place, (own, field) in enumerate(names) if own == node}
        known = ~np.isnan(np.column_stack(list(fields.values()))).all(axis=1)
        parts = sum((np.nan_to_num(fields[part]) for part in _PARTS if part in fields), np.zeros(len(values)))
        total = fields.get("total", totals[:, column])
        totals[:, column] = np.where(np.isnan(total), np.where(known, parts, np.nan), total)
    return nodes, totals


def without_idle_ratios(summary: polars.DataFrame, question: Question) -> polars.DataFrame:
    """A summary without ratios of what a fixed rate fixes: they would only say that the datagrams arrived."""
    if question != "delay":
        return summary
    ratio = polars.when(~polars.col("metric").is_in(_FIXED_BY_RATE))
    return summary.with_columns(
        ratio.then(polars.col(name)).alias(name) for name in ("ratio", "ratio_low", "ratio_high")
    )


def _instance_values(one: OnePoint, names: Sequence[str], measured: Matrices) -> polars.DataFrame:
    """As `frames.instance_values`, from `[trial, name]`; with `place`, `vpn` and `lab` in place of levels.

    What shares a `lab` can have a baseline in common.
    """
    kept = (one.outline["status"] == "ok").to_numpy()
    outline, measured = one.outline.filter(kept), measured[kept]
    _, first, member = np.unique(outline["instance"].to_numpy(), return_index=True, return_inverse=True)
    counts = np.zeros((first.size, len(names)), dtype=np.uint32)
    sums = np.zeros((first.size, len(names)))
    np.add.at(counts, member, ~np.isnan(measured))
    np.add.at(sums, member, np.nan_to_num(measured))
    rows, columns = np.nonzero(counts)
    category = polars.Series("metric", names, polars.Categorical)
    counted = counts[rows, columns]
    return (
        outline.select("campaign_round", "instance", "place")[first[rows]]
        .with_columns(
            category.gather(columns),
            polars.Series("value", sums[rows, columns] / counted, polars.Float64),
            polars.Series("n_trials", counted, polars.UInt32),
        )
        .join(_labs(one.places), on="place", how="left", maintain_order="left")
    )


def _labs(places: polars.DataFrame) -> polars.DataFrame:
    shared = ("runtime", *LAB)
    labs = places.select(shared).unique(maintain_order=True).with_row_index("lab")
    return places.join(labs, on=shared).select("place", "lab", polars.col("vpn").cast(polars.Categorical))


def _summary(one: OnePoint, values: polars.DataFrame, means_of: Collection[str]) -> polars.DataFrame:
    found = summarise_values(values, means_of=means_of, cell=("place",), pairing=_PAIRING)
    rest = [column for column in found.columns if column not in ("place", "metric")]
    return one.levels(found).select(*CELL, polars.col("metric").cast(polars.String), *rest)


def _per_node(one: OnePoint, spent: Matrices, fields: Collection[str]) -> polars.DataFrame:
    """Medians over instances of the sum of some fields."""
    kinds = [(node, place) for place, (node, field) in enumerate(one.costs.names) if field in fields]
    nodes = list(dict.fromkeys(node for node, _ in kinds))
    counts = np.full((len(spent), len(nodes)), np.nan)
    for column, node in enumerate(nodes):
        own = spent[:, [place for of, place in kinds if of == node]]
        counts[:, column] = np.where(np.isnan(own).all(axis=1), np.nan, np.nansum(own, axis=1))
    values = _instance_values(one, nodes, counts)
    medians = values.group_by("place", "metric", maintain_order=True).agg(polars.col("value").median())
    return one.levels(medians).select(*CELL, polars.col("metric").cast(polars.String).alias("node"), "value")


def _typical(one: OnePoint, metric: str, names: Sequence[str], measured: Matrices) -> polars.DataFrame:
    value = polars.col("value")
    numbers = measured[:, names.index(metric)] if metric in names else np.full(len(measured), np.nan)
    rows = one.outline.select("place", "trial", value=polars.Series(numbers, dtype=polars.Float64))
    nearest = (value - value.median()).abs().arg_min()
    found = (
        rows.filter(value.is_not_nan())
        .group_by("place", maintain_order=True)
        .agg(polars.col("trial").get(nearest))
    )
    return one.levels(found).select(*CELL, "trial")


def _without_baseline(values: polars.DataFrame) -> polars.DataFrame:
    is_baseline = polars.col("vpn") == BASELINE_VPN
    return values.filter(~is_baseline).join(
        values.filter(is_baseline), on=("campaign_round", "lab"), how="anti"
    )


def _matrices(one: OnePoint, answers: polars.DataFrame) -> Iterator[Matrix]:
    kept = answers.filter(polars.col("value") > 0)
    means = kept.group_by("campaign_round", "place", maintain_order=True).agg(
        polars.col("value").log().mean()
    )
    places = one.places.join(
        means.select("place").unique(maintain_order=True), on="place", maintain_order="right"
    )
    for (runtime,), here in places.group_by("runtime", maintain_order=True):
        own = means.join(here.select("place").with_row_index("column"), on="place")
        rounds, row = np.unique(own["campaign_round"].to_numpy(), return_inverse=True)
        matrix = np.full((rounds.size, here.height), np.nan)
        matrix[row, own["column"].to_numpy()] = own["value"].to_numpy()
        yield Matrix({"runtime": runtime, **one.point.model_dump()}, here.select(TREATMENT), matrix)


def _in_words(one: OnePoint, values: polars.DataFrame) -> polars.DataFrame:
    levelled = one.levels(values.drop("vpn", "lab"))
    return levelled.select(VALUES).with_columns(polars.col("metric").cast(polars.String))


def _as_categories(one: OnePoint, values: polars.DataFrame) -> polars.DataFrame:
    return _in_words(one, values).with_columns(polars.col(*WORDS).cast(polars.Categorical))
