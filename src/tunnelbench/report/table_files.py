"""Tables of a report as files: CSV, LaTeX (booktabs) and Markdown."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tunnelbench.report.columns import columns_for
from tunnelbench.report.content import Content, Reproduction, Section
from tunnelbench.report.wording import NOTHING, number, point_slug
from tunnelbench.study.wording import point_title

_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "\N{EN DASH}": "--",
        "\N{MICRO SIGN}": r"\textmu{}",
    }
)


@dataclass(frozen=True)
class TableFile:
    """A table as text; its first column names the row, and the others hold numbers."""

    name: str
    """File name without ending."""
    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def write(self, folder: Path) -> None:
        """Write `name`.csv, `name`.tex and `name`.md into `folder`."""
        with (folder / f"{self.name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([self.headings, *self.rows])
        (folder / f"{self.name}.tex").write_text(self.latex(), encoding="utf-8")
        (folder / f"{self.name}.md").write_text(self.markdown(), encoding="utf-8")

    def latex(self) -> str:
        """As a floating table; needs the package booktabs."""
        heading, *rows = (
            " & ".join(cell.translate(_LATEX) for cell in row) + r" \\" for row in [self.headings, *self.rows]
        )
        lines = [
            r"\begin{table}",
            rf"\caption{{{self.title.translate(_LATEX)}}}",
            r"\centering",
            rf"\begin{{tabular}}{{l{'r' * (len(self.headings) - 1)}}}",
            *(r"\toprule", heading, r"\midrule", *rows, r"\bottomrule"),
            r"\end{tabular}",
            r"\end{table}",
        ]
        return "\n".join(lines) + "\n"

    def markdown(self) -> str:
        """As a table of Markdown under a heading."""
        rows = [self.headings, ["---", *["---:"] * (len(self.headings) - 1)], *self.rows]
        lines = [" | ".join(cell.replace("|", r"\|") for cell in row) for row in rows]
        return f"## {self.title}\n\n" + "\n".join(f"| {line} |" for line in lines) + "\n"


def table_files(content: Content) -> Iterator[TableFile]:
    """One table for each point, and those of reasons, of findings and of published values."""
    for section in content.sections:
        yield _of_point(section)
    if content.explained:
        yield _of_reasons(content)
    if content.reproduction is not None:
        yield _of_findings(content.reproduction)
        yield _of_values(content.reproduction)


def _of_point(section: Section) -> TableFile:
    columns = columns_for(section)
    return TableFile(
        f"results-{point_slug(section.point)}",
        point_title(section.point),
        ["Tunnel", "Runtime", *(f"{column.group}: {column.heading}" for column in columns)],
        [
            [result.tunnel, result.runtime, *(column.text(result) for column in columns)]
            for result in section.results
        ],
    )


def _of_reasons(content: Content) -> TableFile:
    return TableFile(
        "why",
        "Why tunnels are as fast as they are",
        ("Tunnel", "Traffic", "Runtime", "Mbit/s", "Busiest node", "Busy", "Bottleneck", "Unexplained"),
        [
            (
                one.result.tunnel,
                point_title(one.result.point),
                one.result.runtime,
                number(one.why.throughput),
                one.why.busiest or NOTHING,
                number(one.why.busiest_share),
                one.why.bottleneck or NOTHING,
                number(one.why.unexplained),
            )
            for one in content.explained
        ],
    )


def _of_findings(reproduction: Reproduction) -> TableFile:
    return TableFile(
        "findings",
        f"Findings of {reproduction.source}",
        ("Finding", "Where", "Outcome", "Numbers", "Test", "p", "Rounds needed"),
        [
            (
                verdict.says,
                verdict.where,
                verdict.outcome,
                verdict.summary,
                verdict.test or NOTHING,
                number(verdict.p_value),
                str(verdict.rounds_needed or NOTHING),
            )
            for verdict in reproduction.verdicts
        ],
    )


def _of_values(reproduction: Reproduction) -> TableFile:
    return TableFile(
        "published-values",
        f"Values of {reproduction.source} beside ours",
        ("Value", "At", "Where", "Published", "Here", "Low", "High", "Published ratio", "Ratio here"),
        [
            (
                beside.metric,
                beside.at,
                beside.where,
                f"{beside.op or ''}{number(beside.published)}",
                *map(number, (beside.value, beside.low, beside.high)),
                *map(number, (beside.published_ratio, beside.ratio)),
            )
            for beside in reproduction.besides
        ],
    )
