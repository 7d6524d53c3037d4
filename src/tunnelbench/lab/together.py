"""Several things at once, of which one failure ends all."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def together(*parts: Coroutine[Any, Any, Result]) -> list[Result]:
    """Runs the parts at the same time; returns their results in order.

    When one fails the others are cancelled, and its own error is raised rather than a group of errors, so
    that callers handle it as if there were one part.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in parts]
    except ExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]
