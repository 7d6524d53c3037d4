"""Lays out a report as one HTML page that needs nothing but itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined

from tunnelbench.analysis.why import LARGEST_UNEXPLAINED
from tunnelbench.report.answers import comparisons, headline_sections
from tunnelbench.report.as_run import link_as_run
from tunnelbench.report.columns import Column, Group, columns_for, groups_of
from tunnelbench.report.content import OUTCOMES, Content, Doubt, Explained, Proof, Result, Section
from tunnelbench.report.courses import SERIES, drawn
from tunnelbench.report.illustrations import MOST_POINTS, Illustrations
from tunnelbench.report.method import bibtex, paragraph
from tunnelbench.report.wording import (
    interval,
    interval_name,
    milliseconds,
    number,
    percentage,
    point_slug,
    probability,
    runtime_title,
    some_of,
)
from tunnelbench.store.database import PACKETS_NAME
from tunnelbench.store.model import CampaignRecord
from tunnelbench.study.treatment import Treatment
from tunnelbench.study.wording import factor_words, metric_words, point_title
from tunnelbench.witness.evidence import Evidence

STUDY_NAME = "study.toml"
MOST_FOLDED = 40
"""Tables of points beside the headlines, folded up."""
MOST_EFFECTS = 15
MOST_DETAILS = 60
"""Numbers behind one finding."""
MOST_WARNINGS = 4
"""Of those with the same advice; the rest is folded up."""


@dataclass(frozen=True)
class Part:
    """Some columns of a table, which fit a screen."""

    slug: str
    title: str
    columns: Sequence[Column]

    @property
    def groups(self) -> Sequence[Group]:
        """The headings over the columns."""
        return groups_of(self.columns)


@dataclass(frozen=True)
class Table:
    """The table of one point, its results grouped by runtime."""

    title: str
    main: Part
    details: Part
    """What is shown on demand."""
    runtimes: Sequence[tuple[str, Sequence[Result]]]


def render(content: Content, illustrations: Illustrations) -> str:
    """The page as text. Every text that comes from data is escaped."""
    environment = Environment(
        loader=PackageLoader("tunnelbench.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(factor_words=factor_words, metric_words=metric_words)
    results = [result for section in content.sections for result in section.results]
    headlines = headline_sections(content.sections)[:MOST_POINTS]
    others = [section for section in content.sections if section not in headlines]
    return environment.get_template("report.html.j2").render(
        content=content,
        campaign=content.campaign,
        reproduction=content.reproduction,
        contents=_contents(content, illustrations),
        comparisons=comparisons(content),
        outcome_counts=_outcome_counts(content),
        tables=[_table(section) for section in headlines],
        folded=[_table(section) for section in others[:MOST_FOLDED]],
        left_out=len(others[MOST_FOLDED:]),
        illustrations=illustrations,
        reasons=_reasons(content),
        unexplained=_unexplained(content),
        warnings=_warnings(content),
        ciphers=sorted(content.cryptography, key=lambda row: -(row.allows or 0)),
        most_warnings=MOST_WARNINGS,
        has_doubtful_ciphers=any(one.why.is_cipher_doubtful for one in content.explained),
        largest_unexplained=LARGEST_UNEXPLAINED,
        proofs=_proofs(results),
        evidence_anchor=evidence_anchor,
        method_paragraph=paragraph(content),
        bibtex=bibtex(content.campaign),
        draw_course=drawn,
        course_units=SERIES,
        most_details=MOST_DETAILS,
        most_effects=MOST_EFFECTS,
        outcome_words=outcome_words,
        sentence=sentence,
        has_encrypted=any(result.encrypted for result in results),
        has_fixed_rates=any(section.at_fixed_rate for section in content.sections),
        has_backgrounds=any(section.point.background != "none" for section in content.sections),
        has_kernels=any(result.runtime == "kernel" for result in results),
        has_rekeys=any(one.rekey or one.rekey_refusal for one in content.bringing),
        has_wifi=link_as_run(content.campaign).wifi_rate is not None,
        has_system_calls=any(one.why.system_calls_per_packet for one in content.explained),
        settings=settings(content.campaign),
        command=repeat_command(content.campaign),
        packets_name=PACKETS_NAME,
        runtime_title=runtime_title,
        point_title=point_title,
        verdict=verdict,
        milliseconds=milliseconds,
        number=number,
        probability=probability,
        interval=interval,
        interval_name=interval_name,
        percentage=percentage,
        some_of=some_of,
    )


def sentence(text: str) -> str:
    """The text with a capital letter at its beginning and a full stop at its end."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def evidence_anchor(treatment: Treatment, runtime: str) -> str:
    """Where on the page the evidence of a treatment stands."""
    return "evidence-" + re.sub(r"[^A-Za-z0-9]+", "-", f"{treatment.key} {runtime}")


def outcome_words(outcome: str, count: int) -> str:
    """The outcome of so many findings as the end of a sentence."""
    if count == 1:
        return {"undecided": "is undecided", "not testable here": "is not testable here"}.get(
            outcome, outcome
        )
    return {
        "holds": "hold",
        "does not hold": "do not hold",
        "undecided": "are undecided",
        "not testable here": "are not testable here",
    }[outcome]


def repeat_command(campaign: CampaignRecord) -> str:
    """The command that measures the same again, given in the directory of the report."""
    names = ("profile", "rounds", "budget", "runtime")
    profile, rounds, budget, runtime = (campaign.plan.get(name) for name in names)
    options = ["--profile", profile] if isinstance(profile, str) else []
    options += ["--rounds", str(rounds)] if isinstance(rounds, int) else []
    options += ["--budget", f"{budget:g}s"] if isinstance(budget, int | float) else []
    options += ["--runtime", runtime] if isinstance(runtime, str) and runtime != "auto" else []
    return shlex.join(["tunnelbench", "run", STUDY_NAME, "--out", "again", *options])


def settings(campaign: CampaignRecord) -> list[tuple[str, str]]:
    """What the plan was asked for, in words: times with their unit, and nothing of what wasn't asked for."""
    return [
        (name.capitalize(), f"{value:g} s" if name in ("budget", "trial") else str(value))
        for name, value in campaign.plan.items()
        if value is not None
    ]


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
    slug, title = point_slug(section.point), point_title(section.point)
    return Table(
        title=title,
        main=Part(slug, title, [column for column in columns if not column.is_detail]),
        details=Part(f"{slug}-details", f"More of {title}", [one for one in columns if one.is_detail]),
        runtimes=[(runtime, section.of_runtime(runtime)) for runtime in runtimes],
    )


def _contents(content: Content, illustrations: Illustrations) -> list[tuple[str, str]]:
    """Anchors and titles of the sections that the page has, for who looks for one."""
    reproduction = content.reproduction
    listed = {
        ("answer", "Answer"): True,
        ("findings", "Findings"): reproduction,
        ("published", "Published values"): reproduction and reproduction.besides,
        ("results", "Results"): True,
        ("figures", "Figures"): illustrations.chapters,
        ("why", "Why"): content.explained,
        ("factors", "Factors"): content.effects,
        ("courses", "Over time"): content.courses,
        ("bringing", "Set-up"): content.bringing,
        ("unmeasured", "Without number"): content.unmeasured,
        ("warnings", "Warnings"): _warnings(content),
        ("evidence", "Evidence"): content.sections,
        ("method", "Method"): True,
        ("machine", "Machine and versions"): True,
        ("repeat", "How to repeat this"): True,
    }
    return [entry for entry, is_there in listed.items() if is_there]


def _proofs(results: Iterable[Result]) -> list[tuple[str, str, str, Proof]]:
    """Anchor, tunnel, runtime and proof, each once."""
    found = {
        evidence_anchor(result.treatment, result.runtime): (result.tunnel, result.runtime, result.proof)
        for result in results
    }
    return [(anchor, *proof) for anchor, proof in found.items()]


def _reasons(content: Content) -> list[tuple[str, list[Explained]]]:
    """Results with reasons under the words for their point and runtime."""
    found: dict[str, list[Explained]] = {}
    for one in content.explained:
        title = f"{point_title(one.result.point)}; {runtime_title(one.result.runtime)}"
        found.setdefault(title, []).append(one)
    return list(found.items())


def _warnings(content: Content) -> list[tuple[str, list[Doubt]]]:
    """What is to be done, and all that calls for it. Too few instances have a note of their own."""
    found: dict[str, list[Doubt]] = {}
    for doubt in content.doubts:
        if doubt.kind != "too-few-instances":
            found.setdefault(doubt.advice, []).append(doubt)
    return list(found.items())


def _unexplained(content: Content) -> list[str]:
    return [
        f"{one.result.tunnel} ({percentage(one.why.unexplained)})"
        for one in content.explained
        if not one.why.is_explained and not one.result.treatment.is_baseline
    ]
