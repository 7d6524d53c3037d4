"""`tunnelbench reproduce`: what it refuses, and what it says of a paper's findings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import cast

from command_line import CommandLine
from rich.console import Console
from small_campaign import EVIDENCE, POINT, RECORD, TREATMENT, write_campaign

from tunnelbench.analysis.findings.verdict import Verdict
from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.commands.reproduce import in_words
from tunnelbench.report.build import build_report_apart
from tunnelbench.store.model import InstanceRecord, TrialRecord
from tunnelbench.store.write import CampaignStore
from tunnelbench.study.cells import Cell
from tunnelbench.study.library import bundled
from tunnelbench.study.published import published
from tunnelbench.study.reading import parse_study

ROUNDS = 8
THROUGHPUT = {"open": 900.0, "ipip": 890.0, "ssh-port-forwarding": 100.0}


def write_thesis(directory: Path) -> None:
    """A campaign of the thesis in which encryption costs most of the throughput; invented, never measured."""
    text = bundled()["kth-four-vpns"].read_text(encoding="utf-8")
    suites = {"ssh-port-forwarding": "aes128-cbc-sha1"}
    treatments = [
        TREATMENT.model_copy(update={"vpn": vpn, "suite": suites.get(vpn, "none")}) for vpn in THROUGHPUT
    ]
    point = POINT.model_copy(update={"streams": 1, "content": "random"})
    cells = [Cell(treatment=treatment, point=point) for treatment in treatments]
    with CampaignStore.create(directory, replace(RECORD, study_toml=text), cells) as store:
        for campaign_round in range(1, ROUNDS + 1):
            for position, treatment in enumerate(treatments):
                instance = store.begin_instance(
                    InstanceRecord(campaign_round, position, treatment, "namespace")
                )
                store.prove(instance, EVIDENCE, 1.0)
                throughput = THROUGHPUT[treatment.vpn] + campaign_round
                metrics = {"throughput": throughput}
                store.add_trial(instance, TrialRecord(0, point, datetime.now(UTC), 1.0, metrics=metrics))
                store.end_instance(instance, "proven")
        store.finish("finished", "done")


def verdicts_of(directory: Path) -> Sequence[Verdict]:
    _, content = build_report_apart(directory, directory)
    assert content.reproduction is not None
    return content.reproduction.verdicts


def test_each_finding_of_the_paper_is_judged(tmp_path: Path) -> None:
    write_thesis(tmp_path / "thesis")
    verdicts = verdicts_of(tmp_path / "thesis")
    assert [verdict.finding for verdict in verdicts] == [
        finding.id for finding in published("kth-four-vpns").findings
    ]
    by_id = {verdict.finding: verdict for verdict in verdicts}
    assert by_id["encryption-costs-most"].outcome == "holds"
    assert by_id["udp-ranking"].outcome == "not testable here"


def test_verdicts_are_told_with_the_papers_words_and_counted(tmp_path: Path) -> None:
    write_thesis(tmp_path / "thesis")
    console = Console(width=300, file=StringIO())
    console.print(in_words(verdicts_of(tmp_path / "thesis")))
    text = cast(StringIO, console.file).getvalue()
    assert (
        "holds: Encapsulation alone (IPIP) costs about 1 % of plain IP; encryption costs over 80 %." in text
    )
    assert "8 findings: holds 1" in text


def test_a_campaign_that_repeats_nothing_has_no_verdicts(tmp_path: Path) -> None:
    write_campaign(tmp_path / "small")
    _, content = build_report_apart(tmp_path / "small", tmp_path / "small")
    assert content.reproduction is None


def test_a_study_that_repeats_nothing_is_refused_before_it_runs(tunnelbench: CommandLine) -> None:
    outcome = tunnelbench("reproduce", "quick")
    assert outcome.status == 2
    assert "quick does not say which published study it repeats" in outcome.errors
    assert "kolahi-fedora15" in outcome.errors


def test_what_is_asked_for_can_be_repeated(tunnelbench: CommandLine) -> None:
    assert parse_study(bundled()["kth-four-vpns"].read_text(), "it", catalogue()).published is not None
    outcome = tunnelbench("reproduce", "kth-four-vpns", "--profile", "smok")
    assert (outcome.status, "Did you mean 'smoke'?" in outcome.errors) == (2, True)
