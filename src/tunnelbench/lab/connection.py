"""The byte stream to one agent: sends calls, matches answers, hands out events."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from typing import TypeVar

import msgspec

from tunnelbench.lab.messages import (
    Answer,
    Call,
    Error,
    Event,
    Incoming,
    Ready,
    Received,
    Request,
    StartPassed,
)

AnswerType = TypeVar("AnswerType")

ANSWER_SECONDS = 10.0
"""How long an agent may take to answer what it does at once."""

_LONGEST_FRAME = 16 << 20
_EMPTY_FRAME = bytes(4)
_NUDGE_SECONDS = 0.02


class NodeError(Exception):
    """A node refused a request, or is gone; the message says which node and why."""


class StartPassedError(NodeError):
    """A node was not ready when a traffic job was to start; a later start may do."""


class Connection:
    """Calls to one agent over a stream that this object owns."""

    def __init__(self, name: str, on_event: Callable[[Event], None], on_end: Callable[[], None]) -> None:
        """`name` is the node's, for messages; both callbacks run in the event loop."""
        self.name = name
        """The node's."""
        self._on_event = on_event
        self._on_end = on_end
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Incoming)
        self._writer: asyncio.StreamWriter | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._outgoing: asyncio.Queue[bytes] = asyncio.Queue()
        self._window: int | None = None
        self._on_their_way = 0
        self._received = asyncio.Event()
        self._end_reason: str | None = None

    @property
    def obituary(self) -> str:
        """That the node is gone, and why."""
        return f"{self.name} is gone: {self._end_reason or 'never started'}"

    async def open(self, stream: socket.socket) -> None:
        """Starts to use `stream`, a connected socket."""
        reader, self._writer = await asyncio.open_connection(sock=stream)
        self._tasks = [
            asyncio.create_task(self._read(reader)),
            asyncio.create_task(self._write(self._writer)),
        ]

    async def call(
        self, request: Request, answer_type: type[AnswerType], timeout: float | None
    ) -> AnswerType:
        """Sends a request and waits at most `timeout` seconds for its answer.

        Raises NodeError when the node refuses, is gone, or does not answer in time, StartPassedError when it
        was not ready for a job in time.
        """
        if self._writer is None or self._end_reason is not None:
            raise NodeError(self.obituary)
        number = next(self._numbers)
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        encoded = self._encoder.encode(Call(id=number, request=request))
        self._outgoing.put_nowait(len(encoded).to_bytes(4, "big") + encoded)
        try:
            async with asyncio.timeout(timeout):
                answer = await waiting
        except TimeoutError:
            kind = type(request).__name__
            raise NodeError(f"{self.name} did not answer {kind} within {timeout or 0:g} s") from None
        finally:
            self._waiting.pop(number, None)
        if isinstance(answer, StartPassed):
            raise StartPassedError(
                f"{self.name} was ready {answer.by / 1e6:.3g} ms after traffic was to start"
            )
        if isinstance(answer, Error):
            raise NodeError(f"{self.name}: {answer.message}")
        if not isinstance(answer, answer_type):
            raise NodeError(f"{self.name} answered {type(answer).__name__} to {type(request).__name__}")
        return answer

    async def close(self, reason: str = "it was closed") -> None:
        """Closes the stream, which ends the node; whoever waits for it is told the reason."""
        self._end(reason)
        if self._writer is not None:
            self._writer.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _read(self, reader: asyncio.StreamReader) -> None:
        reason = "its stream ended"
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(4), "big")
                if length > _LONGEST_FRAME:
                    reason = f"it announced a message of {length} bytes"
                    break
                self._take(self._decoder.decode(await reader.readexactly(length)))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except msgspec.DecodeError as error:
            reason = f"a message from it could not be read: {error}"
        self._end(reason)

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        """Sends what is queued, each message whole and within the agent's window.

        User Mode Linux now and then misses that its serial line has input until more input comes. So whenever
        the other end is silent for a while, it is nudged: by an empty frame, or within one by its next byte.
        """
        try:
            while True:
                rest = await self._next_frame()
                while rest:
                    size = await self._room(len(rest))
                    writer.write(rest[:size])
                    self._on_their_way += size
                    rest = rest[size:]
                    await writer.drain()
        except ConnectionError as error:
            self._end(str(error))

    async def _next_frame(self) -> bytes:
        while True:
            try:
                async with asyncio.timeout(_NUDGE_SECONDS if self._window and self._waiting else None):
                    return await self._outgoing.get()
            except TimeoutError:
                if self._waiting:
                    return _EMPTY_FRAME

    async def _room(self, wanted: int) -> int:
        """How many of `wanted` bytes may be sent now, at least one."""
        if self._window is None:
            return wanted
        while self._on_their_way >= self._window:
            self._received.clear()
            try:
                async with asyncio.timeout(_NUDGE_SECONDS):
                    await self._received.wait()
            except TimeoutError:
                return 1
        return min(wanted, self._window - self._on_their_way)

    def _take(self, incoming: Incoming) -> None:
        if isinstance(incoming.event, Received):
            self._on_their_way -= incoming.event.bytes
            self._received.set()
            return
        if isinstance(incoming.event, Ready):
            self._window = incoming.event.window
        if incoming.event is not None:
            self._on_event(incoming.event)
            return
        if incoming.answer is None:
            return
        if incoming.id is None:
            # The agent could not read a call, so it cannot say whose: whoever waits must not wait for ever.
            for waiting in self._waiting.values():
                _settle(waiting, incoming.answer)
            return
        waiting = self._waiting.get(incoming.id)
        if waiting is not None:
            _settle(waiting, incoming.answer)

    def _end(self, reason: str) -> None:
        if self._end_reason is not None:
            return
        self._end_reason = reason
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(NodeError(self.obituary))
        self._on_end()


def _settle(waiting: asyncio.Future[Answer], answer: Answer) -> None:
    if not waiting.done():
        waiting.set_result(answer)
