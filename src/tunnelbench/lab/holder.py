"""Keeps one lab open, and serves the commands that use it by hand.

The process that holds a lab is the only one that has streams to its nodes: when it ends, however it does, so
does everything in the lab.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

import msgspec

from tunnelbench.errors import UserError
from tunnelbench.lab import holder_messages as messages
from tunnelbench.lab import rendezvous
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.lab import Lab
from tunnelbench.lab.program import Program

_OUTPUT_WINDOW = 256 << 10
_HANG_UP_SECONDS = 1.0

Report = Callable[[str], None]
"""Is told what is being done."""


@dataclass(frozen=True)
class HeldLab:
    """A lab that is ready for use."""

    lab: Lab
    description: messages.Description
    trouble: Callable[[], str | None]
    """What has gone wrong since it came up."""


OpenLab = Callable[[Report], AbstractAsyncContextManager[HeldLab]]
"""Brings a lab up, and takes it down at the context's end."""


class Holder:
    """One lab by name, from its claim to its end."""

    def __init__(self, name: str, open_lab: OpenLab) -> None:
        """A lab that is to be opened by `open_lab`."""
        self._name = name
        self._open_lab = open_lab
        self._held: HeldLab | None = None
        self._step = "starting"
        self._stop = asyncio.Event()
        self._gone = asyncio.Event()
        self._sessions: set[asyncio.Task[None]] = set()

    async def hold(self, announce: Callable[[messages.Reply], None]) -> None:
        """Opens the lab, and holds it until it is asked to take it down or to end.

        `announce` is told each step and in the end the description. Raises UserError or NodeError when the
        lab does not come up; asked to end meanwhile, returns with all undone.
        """
        listener = rendezvous.claim(self._name)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop.set)
        server = await asyncio.start_unix_server(self._accept, sock=listener)
        holding = asyncio.create_task(self._hold(announce))
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait([holding, stopping], return_when=asyncio.FIRST_COMPLETED)
            holding.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await holding
        finally:
            stopping.cancel()
            server.close()
            rendezvous.release(self._name)
            self._gone.set()
            await self._end_sessions()

    async def _hold(self, announce: Callable[[messages.Reply], None]) -> None:
        def report(step: str) -> None:
            self._step = step
            announce(messages.ComingUp(step))

        async with self._open_lab(report) as held:
            self._held = held
            try:
                announce(held.description)
                await asyncio.Event().wait()
            finally:
                self._held = None
                self._step = "going down"

    async def _end_sessions(self) -> None:
        """Those who wait for the end hear of it; all others are cut off."""
        if self._sessions:
            await asyncio.wait(self._sessions, timeout=_HANG_UP_SECONDS)
        for session in self._sessions:
            session.cancel()
        await asyncio.gather(*self._sessions, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = asyncio.create_task(self._serve(reader, writer))
        self._sessions.add(session)
        session.add_done_callback(self._sessions.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await messages.read_frame(reader, messages.REQUESTS)
            if request is not None:
                writer.write(messages.frame(await self._answer(request, reader, writer)))
                await writer.drain()
        except msgspec.DecodeError as error:
            writer.write(messages.frame(messages.Failed(f"the lab was asked what it can't read: {error}")))
        except ConnectionError:
            pass
        finally:
            await _part(reader, writer)

    async def _answer(
        self, request: messages.Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> messages.Reply:
        if isinstance(request, messages.TakeDown):
            self._stop.set()
            await self._gone.wait()
            return messages.Gone()
        held = self._held
        if held is None:
            return messages.ComingUp(self._step)
        match request:
            case messages.Describe():
                return msgspec.structs.replace(held.description, trouble=held.trouble())
            case messages.Execute():
                try:
                    return await _Execution(held.lab, reader, writer).run(request)
                except NodeError as error:
                    return messages.Failed(str(error))
            case messages.Feed() | messages.Signal() | messages.Resize():
                return messages.Failed("no program runs on this connection")


class _Execution:
    """One program, relayed to whoever asked for it."""

    def __init__(self, lab: Lab, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._lab = lab
        self._reader = reader
        self._writer = writer
        self._feeding: set[asyncio.Task[None]] = set()

    async def run(self, request: messages.Execute) -> messages.Reply:
        """Runs it; when whoever asked goes away, hangs up on it as a terminal would."""
        node = self._lab.nodes.get(request.node)
        if node is None:
            known = ", ".join(self._lab.nodes)
            return messages.Failed(f"there is no node {request.node}", advice=f"The nodes are {known}.")
        program = await node.spawn(
            *request.arguments,
            environment=request.environment,
            keep_input=True,
            output_window=_OUTPUT_WINDOW,
            terminal=request.terminal,
        )
        relaying = asyncio.create_task(self._relay_output(program))
        listening = asyncio.create_task(self._listen(program))
        try:
            await asyncio.wait([relaying, listening], return_when=asyncio.FIRST_COMPLETED)
            if not relaying.done():
                raise ConnectionResetError
            await relaying
            return messages.Ended(await program.ended())
        except (asyncio.CancelledError, ConnectionError):
            await _hang_up(program)
            raise
        finally:
            tasks = [relaying, listening, *self._feeding]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _relay_output(self, program: Program) -> None:
        async for piece in program.pieces():
            self._writer.write(messages.frame(messages.Output(piece.error_stream, piece.data)))
            await self._writer.drain()

    async def _listen(self, program: Program) -> None:
        """Carries out what comes from the other end, until that has gone or makes no sense."""
        while True:
            try:
                request = await messages.read_frame(self._reader, messages.REQUESTS)
            except msgspec.DecodeError:
                return
            match request:
                case messages.Feed():
                    # A program that does not read must not keep signals from it.
                    task = asyncio.create_task(self._feed(program, request.data))
                    self._feeding.add(task)
                    task.add_done_callback(self._feeding.discard)
                case messages.Signal():
                    with contextlib.suppress(NodeError):
                        await program.signal(request.number)
                case messages.Resize():
                    with contextlib.suppress(NodeError):
                        await program.resize(request.size.rows, request.size.columns)
                case _:
                    return

    async def _feed(self, program: Program, data: bytes) -> None:
        try:
            await program.input(data, close=not data, timeout=None)
            more = bool(data)
        except NodeError:
            # It reads no more, or has ended.
            more = False
        self._writer.write(messages.frame(messages.Fed(more)))


async def _hang_up(program: Program) -> None:
    with contextlib.suppress(NodeError):
        if program.running:
            await program.signal(signal.SIGHUP)
        await program.stop(_HANG_UP_SECONDS)


async def _part(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Closes a connection when the other end has: what it still sends would keep it from reading our last."""
    with contextlib.suppress(TimeoutError, OSError):
        writer.write_eof()
        async with asyncio.timeout(_HANG_UP_SECONDS):
            while await reader.read(_OUTPUT_WINDOW):
                pass
    writer.close()


def hold(name: str, open_lab: OpenLab) -> None:
    """Holds a lab in this process until it is taken down.

    Tells on standard output, in frames, how it comes up, and falls silent when it is up.
    """

    def announce(reply: messages.Reply) -> None:
        sys.stdout.buffer.write(messages.frame(reply))
        sys.stdout.buffer.flush()
        if isinstance(reply, messages.Description):
            _fall_silent()

    try:
        asyncio.run(Holder(name, open_lab).hold(announce))
    except UserError as error:
        announce(messages.Failed(error.message, error.advice))
    except NodeError as error:
        announce(messages.Failed(str(error)))


def _fall_silent() -> None:
    """Lets go of the pipes to the command that started this process, which need not be there any longer."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
