"""A node as the rest of the product sees it: programs, files, network, counters, captures, traffic."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, TypeVar

import msgspec

from tunnelbench.errors import UserError
from tunnelbench.lab import messages
from tunnelbench.lab.connection import ANSWER_SECONDS, Connection, NodeError
from tunnelbench.lab.jobs import Capture, Traffic
from tunnelbench.lab.program import Completed, Program, ProgramError

Outcome = TypeVar("Outcome")

FETCH_BYTES = 1 << 18
"""How much of a file is asked for at once: little enough for the serial line of a kernel node."""


class Node:
    """The client of one node agent."""

    def __init__(self, name: str) -> None:
        """A node that is to be opened on a stream."""
        self.name = name
        self._connection = Connection(name, self._take, self._take_end)
        self._programs: dict[int, Program] = {}
        self._traffic: dict[int, Traffic[object]] = {}
        self._early: dict[int, list[messages.Event]] = {}
        self._ready = asyncio.Event()
        self._gone = asyncio.Event()

    async def open(self, stream: socket.socket, timeout: float) -> None:
        """Starts to talk on `stream`, which this object owns from now on.

        Returns once the agent serves; raises NodeError when that takes longer than `timeout` seconds.
        """
        await self._connection.open(stream)
        try:
            async with asyncio.timeout(timeout):
                await self._ready.wait()
        except TimeoutError:
            raise NodeError(f"{self.name} did not come up within {timeout:g} s") from None
        if not self.alive:
            raise NodeError(f"{self.name} ended while it came up")

    async def close(self, reason: str = "it was closed") -> None:
        """Closes the stream, which ends the node and all on it; whoever waits for it is told the reason."""
        await self._connection.close(reason)

    @property
    def alive(self) -> bool:
        """Whether the node still answers."""
        return not self._gone.is_set()

    async def call(
        self, request: messages.Request, answer_type: type[Outcome], timeout: float | None = 10.0
    ) -> Outcome:
        """One request and its answer; raises NodeError."""
        return await self._connection.call(request, answer_type, timeout)

    async def identify(self, timeout: float = ANSWER_SECONDS) -> messages.Identity:
        """Who the agent is and what it runs on."""
        return await self.call(messages.Identify(), messages.Identity, timeout)

    async def clock(self) -> int:
        """The node's realtime clock, nanoseconds since the epoch."""
        return (await self.call(messages.ReadClock(), messages.Clock)).nanoseconds

    async def spawn(
        self,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        files: Iterable[messages.NewFile] = (),
        input: bytes = b"",
        keep_input: bool = False,
        output_limit: int | None = 1 << 20,
        output_window: int | None = None,
        terminal: messages.TerminalSize | None = None,
        descriptors: Sequence[int] = (),
        processors: Sequence[int] = (),
    ) -> Program:
        """Starts a program; raises NodeError when it cannot be started.

        With `output_window`, at most so many bytes of its output are held here and it waits for the user of
        `Program.pieces`, its only way out; without, what it prints is kept up to `output_limit` bytes.
        """
        request = messages.Spawn(
            arguments=list(arguments),
            environment=dict(environment or {}),
            files=list(files),
            input=input,
            keep_input=keep_input,
            output_limit=output_limit if output_window is None else None,
            output_window=output_window,
            terminal=terminal,
            descriptors=list(descriptors),
            processors=list(processors),
        )
        number = (await self.call(request, messages.Spawned)).process
        program = Program(self._connection, number, arguments, output_window)
        self._programs[number] = program
        # The program may have printed or ended before its number came back.
        for event in self._early.pop(number, []):
            self._take(event)
        return program

    async def run(
        self,
        *arguments: str,
        timeout: float = ANSWER_SECONDS,
        check: bool = True,
        input: bytes = b"",
        environment: Mapping[str, str] | None = None,
    ) -> Completed:
        """Runs a program to its end; raises ProgramError on another status than 0 unless `check` is off."""
        program = await self.spawn(*arguments, input=input, environment=environment, output_limit=None)
        try:
            completed = await program.wait(timeout)
        except (NodeError, asyncio.CancelledError):
            if program.running and self.alive:
                await program.stop()
            raise
        if not self.alive:
            raise NodeError(self._connection.obituary)
        if check and completed.status != 0:
            raise ProgramError(self.name, arguments, completed)
        return completed

    async def read_file(self, path: str, limit: int = 1 << 20) -> bytes:
        """A file's contents, at most `limit` bytes."""
        return (await self.call(messages.ReadFile(path, limit), messages.Contents)).data

    async def fetch_file(self, path: str, target: Path) -> int:
        """Moves a file of any size from the node to `target`, readable by its owner alone; returns its size.

        Raises NodeError where the node can't read it and UserError where it can't be written here, and then
        leaves nothing of it here.
        """
        with _kept_if_whole(target) as file:
            while True:
                request = messages.ReadFile(path, FETCH_BYTES, file.tell())
                contents = await self.call(request, messages.Contents)
                file.write(contents.data)
                if not contents.truncated:
                    break
            size = file.tell()
        await self.remove_file(path)
        return size

    async def remove_file(self, path: str) -> None:
        """Removes a file of the node."""
        await self.call(messages.RemoveFile(path), messages.Done)

    async def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Writes a file whole, with its parents."""
        await self.call(messages.WriteFile(path, data, mode), messages.Done)

    async def configure(self, *operations: messages.NetworkOperation) -> None:
        """Changes the node's network, in order."""
        if operations:
            await self.call(messages.ConfigureNetwork(list(operations)), messages.Done)

    async def counters(self) -> messages.Counters:
        """Processor time up to this moment."""
        return await self.call(messages.ReadCounters(), messages.Counters)

    async def interfaces(self) -> dict[str, messages.InterfaceCounters]:
        """What has passed each interface."""
        return (await self.call(messages.ReadInterfaces(), messages.Interfaces)).interfaces

    async def start_capture(self, interface: str, markers: Sequence[bytes] = (), keep: int = 0) -> Capture:
        """Watches an interface from now on."""
        request = messages.StartCapture(interface, list(markers), keep)
        return Capture(self._connection, (await self.call(request, messages.CaptureStarted)).capture)

    async def start_traffic(self, job: msgspec.Struct, outcome_type: type[Outcome]) -> Traffic[Outcome]:
        """Starts a traffic job of the load engine; raises NodeError when it cannot be started."""
        raw = msgspec.Raw(msgspec.msgpack.encode(job))
        started = await self.call(messages.StartTraffic(raw), messages.TrafficStarted)
        traffic = Traffic(self._connection, started.traffic, started.port, outcome_type)
        self._traffic[started.traffic] = traffic  # pyright: ignore[reportArgumentType]
        for event in self._early.pop(-started.traffic, []):
            self._take(event)
        return traffic

    async def power_off(self) -> None:
        """Ends the node; a node that is already gone is no error."""
        if self.alive:
            with contextlib.suppress(NodeError):
                await self.call(messages.PowerOff(), messages.Done, timeout=2.0)

    def _take(self, event: messages.Event) -> None:
        match event:
            case messages.Ready():
                self._ready.set()
            case messages.Output() | messages.OutputClosed() | messages.Exited():
                program = self._programs.get(event.process)
                if program is None:
                    self._early.setdefault(event.process, []).append(event)
                else:
                    program.take(event)
            case messages.TrafficFinished() | messages.TrafficFailed():
                traffic = self._traffic.get(event.traffic)
                if traffic is None:
                    self._early.setdefault(-event.traffic, []).append(event)
                else:
                    traffic.take(event)

    def _take_end(self) -> None:
        self._gone.set()
        self._ready.set()
        for program in self._programs.values():
            program.node_is_gone()
        for traffic in self._traffic.values():
            traffic.fail("the node is gone")


@contextlib.contextmanager
def _kept_if_whole(target: Path) -> Generator[IO[bytes]]:
    def owner_only(path: str, flags: int) -> int:
        return os.open(path, flags, 0o600)

    try:
        with open(target, "wb", opener=owner_only) as file:
            yield file
    except BaseException as error:
        target.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise UserError(f"{target} can't be written: {error.strerror}.") from error
        raise
