from __future__ import annotations

import asyncio

import pytest

from tunnelbench.lab.together import together


async def test_results_come_in_the_order_of_the_parts() -> None:
    assert await together(asyncio.sleep(0.01, "slow"), asyncio.sleep(0, "quick")) == ["slow", "quick"]


async def test_one_failure_ends_the_others_and_is_raised_itself() -> None:
    ended = asyncio.Event()

    async def waits() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    async def fails() -> None:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await together(waits(), fails())
    assert ended.is_set()
