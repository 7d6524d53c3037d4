"""What is kept of a program's output, without a node: the events are those that an agent would send."""

from __future__ import annotations

import asyncio
from typing import cast

from tunnelbench.lab.connection import Connection
from tunnelbench.lab.messages import Output
from tunnelbench.lab.program import Program


def program_that_said(*lines: str) -> Program:
    program = Program(cast(Connection, None), 1, ("daemon",))
    say(program, *lines)
    return program


def say(program: Program, *lines: str) -> None:
    program.take(Output(1, error_stream=False, data="".join(f"{line}\n" for line in lines).encode()))


async def test_a_line_is_found_though_thousands_came_since() -> None:
    program = program_that_said("ready", *(f"client {number} came" for number in range(5000)))
    assert await program.line("^ready$", 1) == "ready"
    assert program.heard("^ready$") is not None


async def test_a_line_is_waited_for_in_what_comes_later_too() -> None:
    program = program_that_said("starting")
    waiting = asyncio.create_task(program.line("ready", 10))
    for number in range(20_000):
        say(program, f"client {number} came")
        if number % 1000 == 0:
            await asyncio.sleep(0)
    say(program, "ready at last")
    assert await waiting == "ready at last"


async def test_lines_from_before_a_moment_are_passed_over() -> None:
    program = program_that_said("ready")
    moment = asyncio.get_running_loop().time()
    waiting = asyncio.create_task(program.line("ready", 10, after=moment))
    await asyncio.sleep(0.01)
    say(program, "ready again")
    assert await waiting == "ready again"
