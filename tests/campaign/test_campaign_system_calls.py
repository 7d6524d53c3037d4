"""System calls of a program, counted by this machine's kernel where it lets us."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import ExitStack

import pytest

from tunnelbench.campaign import system_calls

CALLS = 5000
PROGRAM = f"""
import os, sys
sys.stdin.readline()
for _ in range({CALLS}):
    os.getppid()
print("done", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def _permitted() -> None:  # pyright: ignore[reportUnusedFunction]
    try:
        with ExitStack() as cleanup:
            system_calls._counter([os.getpid()], cleanup)  # pyright: ignore[reportPrivateUsage]
    except OSError as error:
        pytest.skip(f"this kernel doesn't let us count system calls: {error}")


@pytest.mark.usefixtures("_permitted")
def test_calls_of_a_program_are_counted() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        with ExitStack() as cleanup:
            counted = system_calls._counter([program.pid], cleanup)  # pyright: ignore[reportPrivateUsage]
            before = counted()
            program.stdin.write("\n")
            program.stdin.flush()
            assert program.stdout.readline() == "done\n"
            calls = counted() - before
        program.communicate("\n")
    assert CALLS <= calls < CALLS + 1000


def test_threads_of_a_node_are_those_in_its_process_namespace() -> None:
    own = os.getpid()
    assert own in list(system_calls._threads(os.getppid()))  # pyright: ignore[reportPrivateUsage]
    assert own not in list(system_calls._threads(own))  # pyright: ignore[reportPrivateUsage]
