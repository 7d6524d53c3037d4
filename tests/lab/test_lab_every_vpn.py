"""Every VPN with one suite: up, proven, carrying and clean, twice in one lab, and after a kill."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import pytest_asyncio

from tunnelbench.campaign.proving import Finding, try_out, usual_attempts
from tunnelbench.lab.image import DEFAULT_IMAGE
from tunnelbench.tunnels import all_tunnels

pytestmark = pytest.mark.lab


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def findings() -> Mapping[str, Finding]:
    """Two at once, since most of the time they wait."""
    attempts = usual_attempts(all_tunnels(), DEFAULT_IMAGE)
    return {found.attempt.treatment.vpn: found async for found in try_out(attempts, at_once=2)}


@pytest.mark.parametrize("vpn", all_tunnels())
def test_it_works_or_says_why_not(findings: Mapping[str, Finding], vpn: str) -> None:
    found = findings[vpn]
    if found.outcome == "blocked":
        pytest.skip(str(found.reason))
    assert found.outcome == "works", found.reason
