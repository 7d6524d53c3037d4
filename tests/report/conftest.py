"""One invented campaign and its report for all tests that only look at them."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_campaign import write_campaign

from tunnelbench.report.build import build_report
from tunnelbench.report.collect import collect
from tunnelbench.report.content import Content
from tunnelbench.store.read import CampaignData


@pytest.fixture(scope="session")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of the invented campaign."""
    return write_campaign(tmp_path_factory.mktemp("campaign"))


@pytest.fixture(scope="session")
def content(campaign: Path) -> Content:
    """What its report says."""
    with CampaignData(campaign) as data:
        return collect(data)


@pytest.fixture(scope="session")
def report(campaign: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Directory of its report."""
    out = tmp_path_factory.mktemp("report")
    with CampaignData(campaign) as data:
        build_report(data, out)
    return out
