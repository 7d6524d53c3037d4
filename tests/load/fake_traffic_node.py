"""A node that records what a load driver asks of it and answers what the test lays down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tunnelbench.lab.connection import StartPassedError

OutcomeT = TypeVar("OutcomeT")


class FakeNodeError(Exception):
    """What a node raises when it has no answer."""


@dataclass
class FakeHandle(Generic[OutcomeT]):
    """A job that ends with a given outcome, or fails."""

    bound_port: int | None
    result: OutcomeT | Exception
    stopped: bool = False

    async def outcome(self, timeout: float) -> OutcomeT:
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    async def stop(self) -> None:
        self.stopped = True


@dataclass
class FakeCompleted:
    """A program that has ended."""

    status: int = 0
    stdout: bytes = b""
    stderr: bytes = b""


@dataclass
class FakeProcess:
    """A program that prints what is waited for, or fails."""

    failure: Exception | None = None
    completed: FakeCompleted = field(default_factory=FakeCompleted)
    waited_for: list[str] = field(default_factory=list[str])
    stopped: bool = False

    async def line(self, pattern: str, timeout: float) -> str:
        self.waited_for.append(pattern)
        if self.failure is not None:
            raise self.failure
        return pattern

    async def stop(self) -> FakeCompleted:
        self.stopped = True
        return self.completed


@dataclass
class FakeTrafficNode:
    """Satisfies `tunnelbench.load.base.TrafficNode`."""

    outcomes: Mapping[type[object], object] = field(default_factory=dict[type[object], object])
    """Outcome type to outcome, or to the exception that the job ends with."""
    port: int = 40_000
    """The port that its listeners get."""
    completed: FakeCompleted = field(default_factory=FakeCompleted)
    """How programs end that `answers` does not name."""
    answers: Mapping[str, FakeCompleted] = field(default_factory=dict[str, FakeCompleted])
    """Program to how it ends."""
    process: FakeProcess = field(default_factory=FakeProcess)
    times: list[int] = field(default_factory=lambda: [1_000_000])
    """What its clock shows at each look; the last again and again."""
    misses: int = 0
    """So many jobs come too late at first."""
    jobs: list[msgspec.Struct] = field(default_factory=list[msgspec.Struct])
    handles: list[FakeHandle[object]] = field(default_factory=list[FakeHandle[object]])
    commands: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    async def start_traffic(self, job: msgspec.Struct, outcome_type: type[OutcomeT]) -> FakeHandle[OutcomeT]:
        self.jobs.append(job)
        if self.misses > 0:
            self.misses -= 1
            raise StartPassedError("the node was not ready")
        result = self.outcomes.get(outcome_type, FakeNodeError(f"no {outcome_type.__name__}"))
        assert isinstance(result, outcome_type | Exception)
        handle = FakeHandle[OutcomeT](self.port, result)
        self.handles.append(handle)  # pyright: ignore[reportArgumentType]
        return handle

    async def run(self, *arguments: str, timeout: float, check: bool = True) -> FakeCompleted:
        self.commands.append(arguments)
        return self.answers.get(arguments[0], self.completed)

    async def spawn(self, *arguments: str) -> FakeProcess:
        self.commands.append(arguments)
        return self.process

    async def fetch_file(self, path: str, target: Path) -> int:
        raise FakeNodeError(f"{path} could not be read")

    async def clock(self) -> int:
        return self.times.pop(0) if len(self.times) > 1 else self.times[0]
