"""The statistics of some points, made with small integers for levels: a treatment in a runtime is a `place`.

Grouping by all columns of levels would take most of the time of a large campaign's report, so rows get their
levels last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars
from numpy.typing import NDArray

from tunnelbench.analysis.frames import LAB, POINT, TREATMENT
from tunnelbench.analysis.groups import tiers_of
from tunnelbench.analysis.observations import Matrix
from tunnelbench.analysis.ranked import LESS_IS_BETTER, RANKED_BY
from tunnelbench.analysis.summary import summarise_values
from tunnelbench.store.outline import Outline, SomePoints, in_words
from tunnelbench.study.points import Point, Question
from tunnelbench.study.treatment import BASELINE_VPN

_CELL = ("point", "place")
_PARTS = ("user", "system", "softirq")
_SWITCHES = ("voluntary_switches", "involuntary_switches")
_MEANS_OF = frozenset({*RANKED_BY.values(), "jitter"})
"""Metrics of which papers give means."""
_FIXED_BY_RATE = ("throughput", "offered", "packets_per_second")
"""Metrics that a fixed rate makes all but equal for every tunnel."""
_PAIRING = ("campaign_round", "lab", "point", "metric")

Matrices = NDArray[np.float64]


@dataclass(frozen=True)
class PointNumbers:
    """Frames as those of `report.numbers.Numbers`, with `point` and `place` in place of levels."""

    summary: polars.DataFrame
    processor: polars.DataFrame
    switches: polars.DataFrame
    queued: polars.DataFrame
    system_calls: polars.DataFrame
    statuses: polars.DataFrame
    typical: polars.DataFrame
    answers: polars.DataFrame
    kept: polars.DataFrame
    alone: polars.DataFrame
    """`campaign_round`, `place` and one `point` of what has no baseline in its round."""
    tiers: polars.DataFrame
    """With all levels."""


def numbers_of_points(some: SomePoints, asked: polars.DataFrame, keep: Collection[str] = ()) -> PointNumbers:
    """All statistics of some points, and their instance values of a few metrics.

    `asked` is what `asked_at` says of all points.
    """
    outline = some.outline
    names = [name for (name,) in some.metrics.names]
    measured = some.metrics.of(outline.trials["trial"])
    spent = some.costs.of(outline.trials["trial"])
    instances = _Instances.of(outline)
    values = instances.values(names, measured)
    answers = values.join(
        asked, left_on=("point", "metric"), right_on=("point", "answer"), how="semi", maintain_order="left"
    )
    summary = _summary(values, _MEANS_OF)
    return PointNumbers(
        summary=without_idle_ratios(summary, asked.filter(question="delay")["point"]),
        processor=_summary(instances.values(*processor_totals(some.costs.names, spent)), ()),
        switches=_per_node(instances, some.costs.names, spent, _SWITCHES),
        queued=_per_node(instances, some.costs.names, spent, ("queued",)),
        system_calls=_per_node(instances, some.costs.names, spent, ("system_calls_per_packet",)),
        statuses=outline.trials.select(*_CELL, "status").unique(),
        typical=_typical(outline, asked, names, measured),
        answers=answers,
        kept=values.filter(polars.col("metric").is_in(list(keep))),
        alone=_without_baseline(values),
        tiers=_tiers(outline, answers),
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


def without_idle_ratios(summary: polars.DataFrame, at_fixed_rate: polars.Series) -> polars.DataFrame:
    """A summary without ratios of what a fixed rate fixes: they would only say that the datagrams arrived."""
    fixed = polars.col("metric").is_in(_FIXED_BY_RATE)
    idle = fixed & polars.col("point").is_in(at_fixed_rate.to_list())
    return summary.with_columns(
        polars.when(~idle).then(polars.col(name)).alias(name) for name in ("ratio", "ratio_low", "ratio_high")
    )


def asked_at(points: polars.DataFrame) -> polars.DataFrame:
    """`point`, the question that is asked there, and the metric that answers it, from `Outline.points`."""
    rows = in_words(points).select(POINT).iter_rows(named=True)
    questions: list[Question] = [Point.model_validate(row).question for row in rows]
    return points.select(
        "point",
        polars.Series("question", questions, polars.String),
        polars.Series("answer", [RANKED_BY[question] for question in questions], polars.Categorical),
    )


@dataclass(frozen=True)
class _Instances:
    """The instances of some points, whose trials are averaged first."""

    trials: NDArray[np.intp]
    """Rows of the trials that count, those of one instance and point together."""
    begins: NDArray[np.intp]
    """Where in these each instance begins."""
    levels: polars.DataFrame
    """Of each instance: campaign_round, instance, place, point, `vpn`, and `lab`: what shares one can have a
    baseline in common."""

    @classmethod
    def of(cls, outline: Outline) -> _Instances:
        numbered = outline.trials.with_row_index("row").filter(polars.col("status") == "ok")
        trials = numbered.sort("point", "instance", maintain_order=True)
        owners = trials.select("point", "instance").to_numpy()
        begins = np.flatnonzero(np.diff(owners, axis=0, prepend=-1).any(axis=1))
        levels = trials.select("campaign_round", "instance", *_CELL)[begins]
        labs = _labs(outline.places)
        return cls(
            trials["row"].to_numpy().astype(np.intp),
            begins,
            levels.join(labs, on="place", how="left", maintain_order="left"),
        )

    def values(self, names: Sequence[str], measured: Matrices) -> polars.DataFrame:
        """As `frames.instance_values`, from `[trial, name]`, with the columns of `levels`."""
        ordered = measured[self.trials]
        counts = np.add.reduceat(~np.isnan(ordered), self.begins, dtype=np.uint32)
        sums = np.add.reduceat(np.nan_to_num(ordered), self.begins)
        rows, columns = np.nonzero(counts)
        counted = counts[rows, columns]
        return self.levels[rows].with_columns(
            polars.Series("metric", names, polars.Categorical).gather(columns),
            polars.Series("value", sums[rows, columns] / counted, polars.Float64),
            polars.Series("n_trials", counted, polars.UInt32),
        )


def _labs(places: polars.DataFrame) -> polars.DataFrame:
    shared = ("runtime", *LAB)
    labs = places.select(shared).unique(maintain_order=True).with_row_index("lab")
    return places.join(labs, on=shared, nulls_equal=True).select("place", "lab", "vpn")


def _summary(values: polars.DataFrame, means_of: Collection[str]) -> polars.DataFrame:
    return summarise_values(values, means_of=means_of, cell=_CELL, pairing=_PAIRING)


def _per_node(
    instances: _Instances, names: Sequence[Sequence[str]], spent: Matrices, fields: Collection[str]
) -> polars.DataFrame:
    """Medians over instances of the sum of some fields."""
    kinds = [(node, place) for place, (node, field) in enumerate(names) if field in fields]
    nodes = list(dict.fromkeys(node for node, _ in kinds))
    counts = np.full((len(spent), len(nodes)), np.nan)
    for column, node in enumerate(nodes):
        own = spent[:, [place for of, place in kinds if of == node]]
        counts[:, column] = np.where(np.isnan(own).all(axis=1), np.nan, np.nansum(own, axis=1))
    values = instances.values(nodes, counts)
    return values.group_by(*_CELL, polars.col("metric").alias("node"), maintain_order=True).agg(
        polars.col("value").median()
    )


def _typical(
    outline: Outline, asked: polars.DataFrame, names: Sequence[str], measured: Matrices
) -> polars.DataFrame:
    # The last column, of nothing, is for metrics that no trial has.
    places = [names.index(metric) if metric in names else -1 for metric in asked["answer"]]
    columns = np.array(places, dtype=np.intp)[outline.trials["point"].to_numpy()]
    numbers = np.column_stack([measured, np.full(len(measured), np.nan)])[np.arange(columns.size), columns]
    value = polars.col("value")
    nearest = (value - value.median()).abs().arg_min()
    return (
        outline.trials.select(*_CELL, "trial", value=polars.Series(numbers, dtype=polars.Float64))
        .filter(value.is_not_nan())
        .group_by(*_CELL, maintain_order=True)
        .agg(polars.col("trial").get(nearest))
    )


def _without_baseline(values: polars.DataFrame) -> polars.DataFrame:
    is_baseline = polars.col("vpn") == BASELINE_VPN
    alone = values.filter(~is_baseline).join(
        values.filter(is_baseline), on=("campaign_round", "lab", "point"), how="anti"
    )
    return alone.select("campaign_round", *_CELL).unique(["campaign_round", "place"])


def _tiers(outline: Outline, answers: polars.DataFrame) -> polars.DataFrame:
    less = polars.col("metric").is_in(list(LESS_IS_BETTER))
    return polars.concat(
        [
            tiers_of(_matrices(outline, answers.filter(~less))),
            tiers_of(_matrices(outline, answers.filter(less)), less_is_better=True),
        ]
    )


def _matrices(outline: Outline, answers: polars.DataFrame) -> Iterator[Matrix]:
    means = (
        answers.filter(polars.col("value") > 0)
        .group_by("point", "place", "campaign_round", maintain_order=True)
        .agg(polars.col("value").log().mean())
        .join(outline.places.select("place", "runtime"), on="place", maintain_order="left")
    )
    points = in_words(outline.points).drop("point").rows(named=True)
    treatments = in_words(outline.places.select(TREATMENT))
    for (point, runtime), here in means.group_by("point", "runtime", maintain_order=True):
        places = here["place"].unique(maintain_order=True)
        column = here["place"].replace_strict({place: at for at, place in enumerate(places)})
        rounds, row = np.unique(here["campaign_round"].to_numpy(), return_inverse=True)
        matrix = np.full((rounds.size, len(places)), np.nan)
        matrix[row, column.to_numpy()] = here["value"].to_numpy()
        yield Matrix({"runtime": runtime, **points[point]}, treatments[places], matrix)
