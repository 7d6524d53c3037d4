"""Lays out a report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from tunnelbench.report.answers import comparisons
from tunnelbench.report.columns import Column, Group, columns_for, groups_of
from tunnelbench.report.content import OUTCOMES, Content, Result, Section
from tunnelbench.report.drawing import Drawing
from tunnelbench.report.wording import (
    interval,
    interval_name,
    milliseconds,
    number,
    percentage,
    point_slug,
    point_title,
    runtime_title,
    some_of,
)
from tunnelbench.store.database import PACKETS_NAME
from tunnelbench.store.model import CampaignRecord
from tunnelbench.witness.evidence import Evidence

STUDY_NAME = "study.toml"


@dataclass(frozen=True)
class Table:
    """The main table of one point, its results grouped by runtime."""

    slug: str
    title: str
    groups: Sequence[Group]
    columns: Sequence[Column]
    runtimes: Sequence[tuple[str, Sequence[Result]]]


def render(content: Content, illustrations: Sequence[tuple[Section, Sequence[Drawing]]]) -> str:
    """The page as text. Every text that comes from data is escaped."""
    environment = Environment(
        loader=PackageLoader("tunnelbench.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        content=content,
        campaign=content.campaign,
        comparisons=comparisons(content),
        outcome_counts=_outcome_counts(content),
        tables=[_table(section) for section in content.sections],
        illustrations=[(point_title(section.point), drawings) for section, drawings in illustrations],
        has_encrypted=any(result.encrypted for section in content.sections for result in section.results),
        has_fixed_rates=any(section.at_fixed_rate for section in content.sections),
        has_kernels=any(
            result.runtime == "kernel" for section in content.sections for result in section.results
        ),
        has_rekeys=any(one.rekey for one in content.bringing),
        command=repeat_command(content.campaign),
        packets_name=PACKETS_NAME,
        runtime_title=runtime_title,
        point_title=point_title,
        verdict=verdict,
        milliseconds=milliseconds,
        number=number,
        interval=interval,
        interval_name=interval_name,
        percentage=percentage,
        some_of=some_of,
    )


def repeat_command(campaign: CampaignRecord) -> str:
    """The command that measures the same again, given in the directory of the report."""
    rounds, budget, runtime = (campaign.plan.get(name) for name in ("rounds", "budget", "runtime"))
    options = ["--rounds", str(rounds)] if isinstance(rounds, int) else []
    options += ["--budget", f"{budget:g}s"] if isinstance(budget, int | float) else []
    options += ["--runtime", runtime] if isinstance(runtime, str) and runtime != "auto" else []
    return shlex.join(["tunnelbench", "run", STUDY_NAME, "--out", "again", *options])


def verdict(evidence: Evidence) -> str:
    """What the witness says of the marker, in words."""
    match evidence.marker_forward, evidence.marker_reverse:
        case True, True:
            seen = "readable in both directions"
        case False, False:
            seen = "readable in neither direction"
        case True, False:
            seen = "readable from host1 to host2 only"
        case _:
            seen = "readable from host2 to host1 only"
    expected = "must be, as nothing here encrypts" if evidence.marker_expected else "must not be"
    return f"{seen} ({expected})"


def _outcome_counts(content: Content) -> str:
    counts = [f"{count} {OUTCOMES[name]}" for name, count in content.outcomes.items() if count]
    return ", ".join(counts)


def _table(section: Section) -> Table:
    columns = columns_for(section)
    runtimes = dict.fromkeys(result.runtime for result in section.results)
    return Table(
        slug=point_slug(section.point),
        title=point_title(section.point),
        groups=groups_of(columns),
        columns=columns,
        runtimes=[(runtime, section.of_runtime(runtime)) for runtime in runtimes],
    )
