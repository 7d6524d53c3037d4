"""Where the node agent's program is, and how it is started from this machine."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

from tunnelbench.errors import UserError


@cache
def agent_program() -> Path:
    """The node agent inside this package; raises UserError where the package was put there without it."""
    program = Path(__file__).parent.parent / "bin" / "tbnode"
    if not os.access(program, os.X_OK):
        raise UserError(
            f"the node agent {program} is missing",
            advice="Install the package, which builds it: pip install .",
        )
    return program


def become_agent() -> NoReturn:
    """The command `tbnode`: the traffic engine on its own."""
    try:
        program = agent_program()
    except UserError as error:
        sys.exit(f"tbnode: {error}")
    os.execv(program, ["tbnode", *sys.argv[1:]])


async def run_agent(*arguments: str) -> None:
    """Runs the agent's program to its end on this machine; raises UserError with what it complained of."""
    process = await start_agent(*arguments)
    _, complaint = await process.communicate()
    if process.returncode != 0:
        raise UserError(complaint.decode(errors="replace").strip() or f"tbnode {arguments[0]} failed")


async def start_agent(*arguments: str, descriptors: Sequence[int] = ()) -> asyncio.subprocess.Process:
    """Starts the agent's program on this machine with the given descriptors open."""
    return await asyncio.create_subprocess_exec(
        agent_program(),
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        pass_fds=tuple(descriptors),
        # Ctrl-C in the terminal is the orchestrator's to handle: it ends the nodes in order.
        start_new_session=True,
    )
