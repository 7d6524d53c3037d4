"""Builds a report on disk: one page, and the study that it is about."""

from __future__ import annotations

import signal
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

from tunnelbench.errors import UserError
from tunnelbench.store.read import CampaignData

if TYPE_CHECKING:
    from tunnelbench.report.content import Content

PAGE_NAME = "report.html"


def build_report_apart(campaign: Path, out: Path) -> tuple[Path, Content]:
    """`build_report` of the campaign in a directory, in a process of its own that ends with it.

    Returns the content too, so that nobody analyses a campaign twice. For a process that has other things to
    do: what draws keeps some 200 MB until it ends. Raises UserError like `build_report` and `CampaignData`.
    """
    apart = ProcessPoolExecutor(1, get_context("spawn"), initializer=signal.signal, initargs=_DIES_SILENTLY)
    with apart:
        with _uninterrupted():
            building = apart.submit(_open_and_build, campaign, out)
        return building.result()


_DIES_SILENTLY = (signal.SIGINT, signal.SIG_DFL)


@contextmanager
def _uninterrupted() -> Generator[None]:
    """Ignores Ctrl-C, as does what starts meanwhile: a Python that loads would print a traceback."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _open_and_build(campaign: Path, out: Path) -> tuple[Path, Content]:
    with CampaignData(campaign) as data:
        return _build(data, out)


def build_report(data: CampaignData, out: Path) -> Path:
    """Write `report.html`, which holds its figures, and the study with its files into `out`.

    Returns the path of the page. `out` is made if it is missing; an earlier report there is replaced.
    Raises UserError if it can't be written.
    """
    return _build(data, out)[0]


def _build(data: CampaignData, out: Path) -> tuple[Path, Content]:
    # Here, so that whoever has a report built apart doesn't load them.
    from tunnelbench.report.collect import collect
    from tunnelbench.report.html import STUDY_NAME, render
    from tunnelbench.report.illustrations import illustrate

    content = collect(data)
    page = render(content, illustrate(content))
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / STUDY_NAME).write_text(content.campaign.study_toml, encoding="utf-8")
        for name, payload in data.contents().items():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            (out / name).write_bytes(payload)
        (out / PAGE_NAME).write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(
            f"The report can't be written to {out}: {error.strerror}.",
            advice="Free space there or choose another place.",
        ) from error
    return out / PAGE_NAME, content
