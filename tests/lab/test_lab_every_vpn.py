"""Every VPN with one suite: up, proven, carrying and clean, twice in one lab, and after a kill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
import pytest_asyncio

from tunnelbench.campaign.proving import Attempt, Finding, try_out, usual_attempts
from tunnelbench.lab.image import DEFAULT_IMAGE
from tunnelbench.lab.together import together
from tunnelbench.tunnels import all_tunnels

pytestmark = pytest.mark.lab


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def findings() -> Mapping[str, Finding]:
    """All are tried at once, since they share labs: two rows of labs, since most of the time they wait."""
    attempts = usual_attempts(all_tunnels(), DEFAULT_IMAGE)
    rows = await together(tried(attempts[::2]), tried(attempts[1::2]))
    return {found.attempt.treatment.vpn: found for row in rows for found in row}


async def tried(attempts: Sequence[Attempt]) -> list[Finding]:
    return [found async for found in try_out(attempts)]


@pytest.mark.parametrize("vpn", all_tunnels())
def test_it_works_or_says_why_not(findings: Mapping[str, Finding], vpn: str) -> None:
    found = findings[vpn]
    if found.outcome == "blocked":
        pytest.skip(str(found.reason))
    assert found.outcome == "works", found.reason
