"""The documentation: its links lead somewhere, and its examples are what they claim to be."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path

import pytest

from tunnelbench.campaign.catalogue import catalogue
from tunnelbench.load import drivers
from tunnelbench.study.reading import parse_study

ROOT = Path(__file__).parents[1]
PAGES = sorted(chain(ROOT.glob("*.md"), ROOT.glob("docs/**/*.md")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if "://" not in target]
    assert [target for target in local if not (page.parent / target).exists()] == []


def test_the_index_names_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    listed = set(re.findall(r"\]\(([^)#]+)[^)]*\)", index.read_text(encoding="utf-8")))
    pages = {str(page.relative_to(index.parent)) for page in index.parent.rglob("*.md") if page != index}
    assert pages <= listed


@pytest.mark.parametrize(
    "example",
    [
        pytest.param(example, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, example in enumerate(re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL))
    ],
)
def test_examples_of_studies_are_studies(example: str) -> None:
    parse_study(example, "the example", catalogue())


def test_every_metric_and_warning_is_defined() -> None:
    text = (ROOT / "docs/reference/metrics.md").read_text(encoding="utf-8")
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    measured = {metric for driver in drivers().values() for metric in driver.measures}
    kinds = set(re.findall(r'kind: ClassVar\[str\] = "([\w-]+)"', sources))
    kinds |= set(re.findall(r'(?:LoadWarning|WarningRecord)\(\s*"([\w-]+)"', sources))
    assert {"unstable-cell", "gap", "leftover"} <= kinds
    assert [name for name in sorted(measured | kinds) if f"`{name}`" not in text] == []
