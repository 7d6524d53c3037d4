"""Time and memory of each part of the analysis, for invented trials of a published study: 10^4, 10^5, 10^6.

python benchmarks/analysis.py [TRIALS...]

Each part runs in a process of its own on a frame of throughput, jitter and delay; the frame is part of the
memory shown.
"""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context

import numpy as np
import polars as pl
from common import table

from tunnelbench.analysis.comparison import paired_comparisons
from tunnelbench.analysis.effects import effects
from tunnelbench.analysis.findings.beside import published_beside_ours
from tunnelbench.analysis.findings.judge import judge
from tunnelbench.analysis.findings.questions import answer_paper
from tunnelbench.analysis.findings.scope import observed
from tunnelbench.analysis.frames import POINT, TREATMENT, TRIALS, instance_values
from tunnelbench.analysis.groups import groups
from tunnelbench.analysis.summary import summarise
from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.study.cells import expand
from tunnelbench.study.correspondence import Correspondence
from tunnelbench.study.library import bundled
from tunnelbench.study.published import published
from tunnelbench.study.reading import read_study

STUDY = "weerawarna-windows"
METRICS = {"throughput": 300.0, "jitter": 0.2, "latency_p50": 1.5}

PARTS: dict[str, Callable[[pl.DataFrame, Correspondence], object]] = {
    "the frame alone": lambda trials, _: trials,
    "summary": lambda trials, _: summarise(trials),
    "findings": lambda trials, means: judge(observed(instance_values(trials)), published(STUDY), means),
    "beside ours": lambda trials, means: published_beside_ours(
        observed(instance_values(trials)), published(STUDY), means
    ),
    "questions": lambda trials, means: answer_paper(
        observed(instance_values(trials)), published(STUDY), means
    ),
    "tiers": lambda trials, _: groups(instance_values(trials)),
    "pairs": lambda trials, _: paired_comparisons(instance_values(trials)),
    "effects": lambda trials, _: effects(instance_values(trials)),
}


def main(sizes: list[int]) -> None:
    """Prints the table."""
    rows: list[list[str]] = []
    for size in sizes:
        for part in PARTS:
            with get_context("spawn").Pool(1) as apart:
                trials, seconds, peak = apart.apply(measure, (size, part))
            rows.append([f"{trials}", part, f"{seconds:.2f}", f"{peak:.0f}"])
    print(table(["trials", "part", "s", "peak memory, MB"], rows))


def measure(size: int, part: str) -> tuple[int, float, float]:
    """How many trials, seconds, and the process's peak memory in MB."""
    trials, means = campaign(size)
    began = time.monotonic()
    PARTS[part](trials, means)
    seconds = time.monotonic() - began
    return trials.height // len(METRICS), seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def campaign(size: int) -> tuple[pl.DataFrame, Correspondence]:
    """About so many trials: one of each of the study's cells in as many rounds as that takes."""
    known = catalogue()
    study = read_study(bundled()[STUDY], known)
    assert study.published is not None
    cells = [cell for cell in expand(study, known) if cell.skipped is None]
    treatments = {treatment: number for number, treatment in enumerate({cell.treatment: 0 for cell in cells})}
    rows = pl.DataFrame(
        [
            {
                "runtime": "namespace",
                **cell.treatment.model_dump(),
                **cell.point.model_dump(mode="json"),
                "status": "ok",
                "bring_up": treatments[cell.treatment],
            }
            for cell in cells
        ],
        schema_overrides={column: TRIALS[column] for column in (*TREATMENT, *POINT)},
    )
    rounds = pl.DataFrame({"campaign_round": range(1, max(2, size // len(cells)) + 1)})
    metrics = pl.DataFrame({"metric": list(METRICS), "usual": list(METRICS.values())})
    trials = rounds.join(rows, how="cross").with_row_index("trial").join(metrics, how="cross")
    luck = np.random.default_rng(1).lognormal(sigma=0.05, size=trials.height)
    return (
        trials.with_columns(
            instance=pl.col("campaign_round") * len(treatments) + pl.col("bring_up"),
            value=pl.col("usual") * luck,
        )
        .select(pl.col(column).cast(kind) for column, kind in TRIALS.items())
        .rechunk(),
        study.published,
    )


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [10**4, 10**5, 10**6])
