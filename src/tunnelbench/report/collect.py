"""Collects the content of a report from the store's frames and the statistics of `analysis`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from typing import Any

import msgspec
import polars

from tunnelbench.analysis.disturbance import disturbances, machine_summary
from tunnelbench.analysis.effects import Effects, effects
from tunnelbench.analysis.findings.scope import METRICS
from tunnelbench.analysis.frames import CELL, POINT, TREATMENT
from tunnelbench.analysis.loading import added_by_background
from tunnelbench.analysis.ranked import LESS_IS_BETTER
from tunnelbench.analysis.wall_time import WallTime, wall_time
from tunnelbench.analysis.warnings import MeasurementWarning
from tunnelbench.ciphers.cost import Cost
from tunnelbench.report.answers import headline_sections
from tunnelbench.report.content import (
    OUTCOMES,
    Added,
    Bringing,
    Content,
    Cryptography,
    Doubt,
    Estimate,
    Proof,
    Result,
    Section,
    Unmeasured,
)
from tunnelbench.report.courses import courses
from tunnelbench.report.numbers import LEVELS, Numbers, numbers_of
from tunnelbench.report.reasons import explained
from tunnelbench.report.reproduction import correspondence_of, reproduction
from tunnelbench.report.wording import printable, some_of
from tunnelbench.store.model import CampaignRecord, CryptographyRecord, RekeyRecord
from tunnelbench.store.outline import in_words
from tunnelbench.store.read import CampaignData
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.wording import point_title
from tunnelbench.witness.evidence import Evidence

_RUNTIMES = ("namespace", "kernel")

Row = dict[str, Any]
Names = Mapping[Treatment, str]
Place = tuple[Treatment, str]
"""A treatment in a runtime."""


def collect(data: CampaignData) -> Content:
    """Everything that a report says of a campaign, finished or not."""
    campaign, cells, instances = data.campaign(), data.cells(), data.instances()
    states = data.machine_states()
    cryptography, correspondence = data.cryptography(), correspondence_of(campaign)
    numbers = numbers_of(data, METRICS if correspondence else ())
    warnings = data.warnings()
    names = _names(cells, instances)
    proofs = _proofs(instances)
    results = _results(numbers, proofs, names)
    sections = _sections(results)
    headlines = headline_sections(sections)
    return Content(
        campaign=campaign,
        sections=sections,
        outcomes=outcomes(cells, instances, numbers.statuses),
        unmeasured=(
            *_unproven_instances(instances, names),
            *_void_trials(data.void_trials(), names),
            *_skipped_cells(cells, names),
        ),
        doubts=(
            *_doubts(warnings, names),
            *_doubts_about(numbers.warnings),
            *_doubts_about(disturbances(states)),
        ),
        machine=machine_summary(states),
        wall_time=_wall_time(data, campaign, instances, states),
        bringing=_bringing(proofs, data.rekeys(), warnings, names),
        summary=numbers.summary,
        processor=numbers.processor,
        packet_logs=data.packet_logs(),
        calibrations=data.calibrations(),
        settled=data.settled(),
        warm_ups=data.warm_ups(),
        cryptography=tuple(_cryptography(cryptography, results, names)),
        explained=tuple(explained(headlines, campaign, cryptography, numbers)),
        courses=tuple(courses(headlines, data, numbers.typical)),
        reproduction=reproduction(correspondence, numbers.kept),
        effects=_effects(numbers.answers),
    )


def _wall_time(
    data: CampaignData, campaign: CampaignRecord, instances: polars.DataFrame, states: polars.DataFrame
) -> WallTime | None:
    traffic = data.traffic_seconds()
    return None if traffic is None else wall_time(campaign.created, instances, states, traffic)


def outcomes(
    cells: polars.DataFrame, instances: polars.DataFrame, trials: polars.DataFrame
) -> dict[str, int]:
    """How many cells came out how; keys are those of OUTCOMES. Of trials, LEVELS and status are looked at."""
    status = polars.col("status")
    proven = trials.filter(status == "ok").select(LEVELS).unique().with_columns(proven=True)
    void = trials.filter(status == "void").select(LEVELS).unique().with_columns(void=True)
    ends = instances.group_by(TREATMENT).agg(
        refused=(status == "refused").any(),
        failed=(status == "failed").any(),
        left_out=(status == "skipped").any(),
    )
    outcome = (
        polars.when("proven")
        .then(polars.lit("proven"))
        .when(polars.col("skipped").is_not_null() | polars.col("left_out"))
        .then(polars.lit("skipped"))
        .when("refused")
        .then(polars.lit("refused"))
        .when("failed")
        .then(polars.lit("failed"))
        .when("void")
        .then(polars.lit("void"))
        .otherwise(polars.lit("unfinished"))
    )
    counts = (
        cells.join(proven, on=LEVELS, how="left", nulls_equal=True)
        .join(void, on=LEVELS, how="left", nulls_equal=True)
        .join(ends, on=TREATMENT, how="left")
        .select(outcome.alias("outcome"))["outcome"]
        .value_counts()
    )
    found = dict(counts.iter_rows())
    return {name: found.get(name, 0) for name in OUTCOMES}


_PLACE = {"gateway_os": "gateways {}", "host_os": "hosts {}", "mtu": "MTU {}"}
"""How that is written of a treatment which may differ within a campaign."""


def _names(*frames: polars.DataFrame) -> dict[Treatment, str]:
    """Tunnels as they are called here: with systems and MTU only where these differ within the campaign."""
    treatments = polars.concat([frame.select(TREATMENT) for frame in frames]).unique(maintain_order=True)
    varying = [column for column in _PLACE if treatments[column].n_unique() > 1]
    same = treatments["gateway_os"].equals(treatments["host_os"])
    written = _PLACE | ({"gateway_os": "{}", "host_os": ""} if same else {})

    def name(treatment: Treatment) -> str:
        levels = [written[column].format(getattr(treatment, column)) for column in varying]
        return printable(" ".join([treatment.tunnel, *filter(None, levels)]))

    return {treatment: name(treatment) for treatment in map(_treatment, treatments.iter_rows(named=True))}


def _results(numbers: Numbers, proofs: Mapping[Place, Proof], names: Names) -> list[Result]:
    costs = _estimates(numbers.processor)
    tiers = {
        (_treatment(row), row["runtime"], _point(row)): row["tier"]
        for row in numbers.tiers.iter_rows(named=True)
    }
    added = {
        (_treatment(row), row["runtime"], _point(row)): Added(row["n"], row["added"], row["low"], row["high"])
        for row in in_words(added_by_background(numbers.answers)).iter_rows(named=True)
    }
    results = [
        Result(
            tunnel=names[treatment],
            treatment=treatment,
            runtime=runtime,
            point=point,
            metrics=estimates,
            processor=costs.get((treatment, runtime, point), {}),
            proof=proofs[treatment, runtime],
            tier=tiers.get((treatment, runtime, point)),
            added=added.get((treatment, runtime, point)),
        )
        for (treatment, runtime, point), estimates in _estimates(numbers.summary).items()
    ]
    return [result if _is_repeated(result) else replace(result, tier=None) for result in results]


def _is_repeated(result: Result) -> bool:
    return result.ranking is not None and result.ranking.n_instances > 1


def _effects(answers: polars.DataFrame) -> dict[str, Effects]:
    """What factors explain of each metric that answers, where it was measured more than once."""
    found = {metric: effects(answers, metric) for metric in answers["metric"].unique().sort()}
    return {metric: told for metric, told in found.items() if told is not None and told.residual_freedom > 0}


def _estimates(summary: polars.DataFrame) -> dict[tuple[Treatment, str, Point], dict[str, Estimate]]:
    columns = ["metric", *(column.name for column in fields(Estimate))]
    cells = summary.group_by(CELL, maintain_order=True).agg(estimates=polars.struct(columns))
    return {
        (_treatment(row), row["runtime"], _point(row)): {
            one["metric"]: msgspec.convert(one, Estimate) for one in row["estimates"]
        }
        for row in cells.iter_rows(named=True)
    }


def _sections(results: Iterable[Result]) -> tuple[Section, ...]:
    by_point: dict[Point, list[Result]] = {}
    for result in results:
        by_point.setdefault(result.point, []).append(result)
    points = sorted(by_point, key=_place)
    return tuple(Section(point, tuple(sorted(by_point[point], key=_best_first))) for point in points)


def _place(point: Point) -> tuple[str, str, bool, str, int, bool, str]:
    is_named, is_loaded = point.profile != "constant", point.background != "none"
    size = point.payload_bytes or 0
    return point.transport, point.ip, is_named, point.profile, size, is_loaded, point.key


def _best_first(result: Result) -> tuple[int, float]:
    place = _RUNTIMES.index(result.runtime) if result.runtime in _RUNTIMES else len(_RUNTIMES)
    if result.ranking is None:
        return place, math.inf
    return place, result.ranking.median * (1 if result.ranked_by in LESS_IS_BETTER else -1)


def _proofs(instances: polars.DataFrame) -> dict[Place, Proof]:
    evidence, proven = polars.col("evidence"), polars.col("status") == "proven"
    seen = (proven | (polars.col("status") == "interrupted")) & evidence.is_not_null()
    grouped = instances.filter(polars.col("superseded").not_()).group_by(
        *TREATMENT, "runtime", maintain_order=True
    )
    rows = grouped.agg(
        proven=seen.sum(),
        instances=polars.len(),
        evidence=evidence.filter(seen).last(),
        setup_ms=polars.col("setup_ms").median(),
        handshake_ms=polars.col("handshake_ms").median(),
    )
    return {
        (_treatment(row), row["runtime"]): Proof(
            row["proven"], row["instances"], _evidence(row), row["setup_ms"], row["handshake_ms"]
        )
        for row in rows.iter_rows(named=True)
    }


def _bringing(
    proofs: Mapping[Place, Proof], rekeys: polars.DataFrame, warnings: polars.DataFrame, names: Names
) -> tuple[Bringing, ...]:
    columns = [column.name for column in fields(RekeyRecord)]
    medians = rekeys.group_by(*TREATMENT, "runtime").agg(polars.col(columns).median())
    changed = {
        (_treatment(row), row["runtime"]): RekeyRecord(**{column: row[column] for column in columns})
        for row in medians.iter_rows(named=True)
    }
    refusals = {
        _treatment(row): row["message"]
        for row in warnings.filter(polars.col("kind") == "no-rekey").iter_rows(named=True)
    }
    found = [
        Bringing(
            names[treatment],
            runtime,
            proof,
            changed.get((treatment, runtime)),
            refusals.get(treatment),
        )
        for (treatment, runtime), proof in proofs.items()
        if proof.setup_ms is not None
    ]
    return tuple(sorted(found, key=lambda one: (one.runtime, one.proof.setup_ms or 0)))


def _unproven_instances(instances: polars.DataFrame, names: Names) -> Iterable[Unmeasured]:
    broken = polars.col("status").is_in(["refused", "failed", "skipped", "interrupted"])
    place = [*TREATMENT, "runtime"]
    current = instances.filter(polars.col("superseded").not_())
    grouped = (
        current.with_columns(attempts=polars.len().over(place))
        .filter(broken)
        .group_by([*place, "status", "reason"], maintain_order=True)
        .agg(
            polars.col("attempts").first(),
            polars.col("log_tail", "evidence").drop_nulls().last(),
            count=polars.len(),
        )
    )
    for row in grouped.iter_rows(named=True):
        affected = f"{row['count']} of {row['attempts']} instances"
        yield Unmeasured(
            names[_treatment(row)],
            row["runtime"],
            row["status"],
            row["reason"],
            affected,
            row["log_tail"],
            _evidence(row),
        )


def _void_trials(void: polars.DataFrame, names: Names) -> Iterable[Unmeasured]:
    grouped = void.group_by([*LEVELS, "runtime", "reason"], maintain_order=True).agg(count=polars.len())
    for row in grouped.iter_rows(named=True):
        trials = "1 trial" if row["count"] == 1 else f"{row['count']} trials"
        affected = f"{trials} of {point_title(_point(row))}"
        yield Unmeasured(names[_treatment(row)], row["runtime"], "void", row["reason"], affected)


def _skipped_cells(cells: polars.DataFrame, names: Names) -> Iterable[Unmeasured]:
    """Each reason once for every tunnel, and once in all where it is no tunnel's fault but the load's."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in cells.filter(polars.col("skipped").is_not_null()).iter_rows(named=True):
        of_tunnels = found.setdefault(row["skipped"], {})
        of_tunnels.setdefault(names[_treatment(row)], []).append(point_title(_point(row)))
    for reason, of_tunnels in found.items():
        if len(of_tunnels) == len(names) > 1:
            of_tunnels = {"all": next(iter(of_tunnels.values()))}
        for tunnel, titles in of_tunnels.items():
            yield Unmeasured(tunnel, None, "skipped", reason, some_of(titles))


def _doubts(warnings: polars.DataFrame, names: Names) -> Iterable[Doubt]:
    grouped = warnings.group_by([*TREATMENT, "kind", "advice"], maintain_order=True).agg(
        polars.col("message").first(), count=polars.len()
    )
    for row in grouped.iter_rows(named=True):
        yield Doubt(names[_treatment(row)], row["kind"], row["message"], row["advice"], row["count"])


def _doubts_about(warnings: Iterable[MeasurementWarning]) -> Iterable[Doubt]:
    for warning in warnings:
        yield Doubt(None, warning.kind, warning.message, warning.advice, 1)


def _cryptography(
    records: Iterable[CryptographyRecord], results: Iterable[Result], names: Names
) -> Iterable[Cryptography]:
    reached: dict[Place, float] = {}
    for result in results:
        if result.point.question == "throughput" and result.throughput is not None:
            place = (result.treatment, result.runtime)
            reached[place] = max(reached.get(place, 0.0), result.throughput.median)
    for record in records:
        allows = None
        if record.ns_per_packet is not None and record.ns_per_byte is not None:
            allows = Cost(record.ns_per_packet, record.ns_per_byte).mbit_per_second()
        yield Cryptography(
            names[record.treatment],
            record.treatment,
            record.runtime,
            record.encryption,
            record.integrity,
            record.implementation,
            record.ns_per_packet,
            record.ns_per_byte,
            allows,
            reached.get((record.treatment, record.runtime)),
            record.reason,
        )


def _treatment(row: Row) -> Treatment:
    return Treatment(**{column: row[column] for column in TREATMENT})


def _point(row: Row) -> Point:
    return Point.model_validate({column: row[column] for column in POINT})


def _evidence(row: Row) -> Evidence | None:
    return None if row["evidence"] is None else msgspec.json.decode(row["evidence"], type=Evidence)
