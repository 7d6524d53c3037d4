"""The byte stream to one agent: sends calls, matches answers, hands out events."""

from __future__ import annotations

import asyncio
import itertools
import socket
from collections.abc import Callable
from typing import TypeVar

import msgspec

from tunnelbench.lab.messages import Answer, Call, Error, Event, Incoming, Request

AnswerType = TypeVar("AnswerType")

_LONGEST_FRAME = 16 << 20
_EMPTY_FRAME = bytes(4)
_NUDGE_SECONDS = 0.1


class NodeError(Exception):
    """A node refused a request, or is gone; the message says which node and why."""


class Connection:
    """Calls to one agent over a stream that this object owns."""

    def __init__(self, name: str, on_event: Callable[[Event], None], on_end: Callable[[], None]) -> None:
        """`name` is the node's, for messages; both callbacks run in the event loop."""
        self._name = name
        self._on_event = on_event
        self._on_end = on_end
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Answer]] = {}
        self._encoder = msgspec.msgpack.Encoder()
        self._decoder = msgspec.msgpack.Decoder(Incoming)
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None
        self._end_reason: str | None = None

    async def open(self, stream: socket.socket) -> None:
        """Starts to use `stream`, a connected socket."""
        reader, self._writer = await asyncio.open_connection(sock=stream)
        self._reading = asyncio.create_task(self._read(reader))

    async def call(self, request: Request, answer_type: type[AnswerType], timeout: float) -> AnswerType:
        """Sends a request and waits at most `timeout` seconds for its answer.

        Raises NodeError when the node refuses, is gone, or does not answer in time.
        """
        if self._writer is None or self._end_reason is not None:
            raise NodeError(f"{self._name} is gone: {self._end_reason or 'never started'}")
        number = next(self._numbers)
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiting
        encoded = self._encoder.encode(Call(id=number, request=request))
        self._writer.write(len(encoded).to_bytes(4, "big") + encoded)
        try:
            async with asyncio.timeout(timeout):
                answer = await self._nudged_answer(self._writer, waiting)
        except TimeoutError:
            kind = type(request).__name__
            raise NodeError(f"{self._name} did not answer {kind} within {timeout:g} s") from None
        except ConnectionError as error:
            raise NodeError(f"{self._name} is gone: {error}") from None
        finally:
            self._waiting.pop(number, None)
        if isinstance(answer, Error):
            raise NodeError(f"{self._name}: {answer.message}")
        if not isinstance(answer, answer_type):
            raise NodeError(f"{self._name} answered {type(answer).__name__} to {type(request).__name__}")
        return answer

    async def _nudged_answer(self, writer: asyncio.StreamWriter, waiting: asyncio.Future[Answer]) -> Answer:
        """Waits for an answer, and sends an empty frame whenever there is none for a while.

        User Mode Linux now and then misses that its serial line has input until more input comes.
        """
        await writer.drain()
        while not waiting.done():
            await asyncio.wait([waiting], timeout=_NUDGE_SECONDS)
            if not waiting.done():
                writer.write(_EMPTY_FRAME)
                await writer.drain()
        return waiting.result()

    async def close(self) -> None:
        """Closes the stream, which ends the node."""
        if self._writer is not None:
            self._writer.close()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        self._end("it was closed")

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

    def _take(self, incoming: Incoming) -> None:
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
                waiting.set_exception(NodeError(f"{self._name} is gone: {reason}"))
        self._on_end()


def _settle(waiting: asyncio.Future[Answer], answer: Answer) -> None:
    if not waiting.done():
        waiting.set_result(answer)
