"""What VPNs that are programs have in common: private files and daemons that a node has until cleanup."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.lab.together import together


async def place_files(
    node: Node, directory: str, files: Mapping[str, bytes], cleanup: AsyncExitStack
) -> None:
    """Makes a directory with files that only root may read; it goes with `cleanup`."""
    cleanup.push_async_callback(node.run, "rm", "-rf", directory)
    await node.run("mkdir", "-p", "-m", "700", directory)
    for name, data in files.items():
        await node.write_file(f"{directory}/{name}", data, 0o600)


async def start_daemon(
    node: Node, cleanup: AsyncExitStack, *arguments: str, environment: Mapping[str, str] | None = None
) -> Program:
    """Starts a program that stays in the foreground, and stops it with `cleanup`."""
    program = await node.spawn(*arguments, environment=environment)
    cleanup.push_async_callback(program.stop)
    return program


async def all_print(
    pattern: str, programs: Iterable[Program], timeout: float, *, after: float = -math.inf
) -> None:
    """Waits until each program has printed a line in which the regular expression is found.

    Passes over what came in before `after`, a time of the event loop's clock. Raises NodeError, with a
    program's last lines, as soon as one ends, or after `timeout` seconds.
    """
    await together(*(program.line(pattern, timeout, after=after) for program in programs))


async def until(
    condition: Callable[[], Awaitable[bool]],
    seconds: float,
    complaint: str,
    daemon: Program,
    *,
    every: float = 0.02,
) -> None:
    """Asks again and again, with pauses of `every` seconds, until a condition holds.

    Raises NodeError with the complaint, such as `no new keys`, and the daemon's last lines when the time is
    over first.
    """
    try:
        async with asyncio.timeout(seconds):
            while True:
                if await condition():
                    return
                await asyncio.sleep(every)
    except TimeoutError:
        raise NodeError(f"{complaint} within {seconds:g} s; its last lines:\n{daemon.log_tail()}") from None


def seconds_between(begun: Program, beginning: str, done: Iterable[Program], end: str) -> float | None:
    """The time from the newest line of one program to the latest of such lines of several others.

    `beginning` and `end` are regular expressions. None where one of them did not print such a line. Lines are
    timed as they come in here, some tenths of a millisecond after they were printed.
    """
    start, ends = begun.heard(beginning), [program.heard(end) for program in done]
    heard = [time for time in ends if time is not None]
    return max(heard) - start if start is not None and len(heard) == len(ends) else None


def printed(program: Program) -> str:
    """All that a program has printed, errors last."""
    return (program.stdout + program.stderr).decode(errors="replace")
