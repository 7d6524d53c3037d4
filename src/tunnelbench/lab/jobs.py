"""What a node does by itself for a while: a capture, or measured traffic."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

import msgspec

from tunnelbench.lab import messages
from tunnelbench.lab.connection import ANSWER_SECONDS, Connection, NodeError

Outcome = TypeVar("Outcome")


class Traffic(Generic[Outcome]):
    """A traffic job under way on a node."""

    def __init__(
        self, connection: Connection, number: int, port: int | None, outcome_type: type[Outcome]
    ) -> None:
        """Made by `Node.start_traffic`."""
        self._connection = connection
        self._number = number
        self._outcome_type = outcome_type
        self.bound_port = port
        self._result: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()

    async def outcome(self, timeout: float) -> Outcome:
        """Waits at most `timeout` seconds for the job's end; raises NodeError when it gave no result."""
        try:
            async with asyncio.timeout(timeout):
                raw = await asyncio.shield(self._result)
        except TimeoutError:
            raise NodeError(f"{self._connection.name}: traffic did not end within {timeout:g} s") from None
        return msgspec.msgpack.decode(raw, type=self._outcome_type)

    async def stop(self) -> None:
        """Ends the job early; its outcome still arrives."""
        await self._connection.call(messages.StopTraffic(self._number), messages.Done, ANSWER_SECONDS)

    def take(self, event: messages.TrafficFinished | messages.TrafficFailed) -> None:
        """Takes in what the agent reports of this job."""
        if self._result.done():
            return
        if isinstance(event, messages.TrafficFinished):
            self._result.set_result(event.outcome)
        else:
            self.fail(event.message)

    def fail(self, message: str) -> None:
        """Ends the wait for an outcome that will not come."""
        if not self._result.done():
            self._result.set_exception(NodeError(f"{self._connection.name}: {message}"))
            # Whoever still wants the outcome gets the error; nobody need ask.
            self._result.exception()


class Capture:
    """A capture under way."""

    def __init__(self, connection: Connection, number: int) -> None:
        """Made by `Node.start_capture`."""
        self._connection = connection
        self._number = number

    async def stop(self) -> messages.CaptureReport:
        """Ends it, and gives what it saw."""
        return await self._connection.call(
            messages.StopCapture(self._number), messages.CaptureReport, ANSWER_SECONDS
        )
