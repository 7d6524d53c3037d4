"""What VPNs that are programs have in common: asking until something is so."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.program import Program
from tunnelbench.tunnels.daemons import until


@dataclass(frozen=True)
class Daemon:
    """What is asked of a program that has something to say."""

    words: str

    def log_tail(self) -> str:
        return self.words


async def test_it_asks_until_the_condition_holds() -> None:
    answers = iter([False, False, True])

    async def holds() -> bool:
        return next(answers)

    await until(holds, 10, "never", cast(Program, Daemon("")), every=0.0)
    assert list(answers) == []


async def test_it_gives_up_with_the_last_words_of_the_daemon() -> None:
    async def holds() -> bool:
        return False

    with pytest.raises(NodeError, match=r"pluto had no new keys within 0\.01 s; its last lines:\nno peer"):
        await until(holds, 0.01, "pluto had no new keys", cast(Program, Daemon("no peer")), every=0.0)
