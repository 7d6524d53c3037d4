"""A node as the rest of the product sees it: programs, files, network, counters, captures, traffic."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from tunnelbench.lab import messages
from tunnelbench.lab.connection import Connection, NodeError

Outcome = TypeVar("Outcome")

_LOG_LINES = 200
_OUTPUT_GRACE = 0.5


@dataclass(frozen=True)
class Completed:
    """How a program ended: exit code (negative for a signal), and what it printed."""

    status: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode(errors="replace")

    @property
    def error_text(self) -> str:
        """Standard error as text."""
        return self.stderr.decode(errors="replace")


class ProgramError(NodeError):
    """A program on a node ended with an error; the message has its last lines."""

    def __init__(self, node: str, arguments: Sequence[str], completed: Completed) -> None:
        """Describes the failed call of `arguments` on `node`."""
        last_lines = (completed.error_text or completed.text).strip().splitlines()[-5:]
        super().__init__(
            f"{node}: {' '.join(arguments)} ended with {completed.status}: {' / '.join(last_lines)}"
        )
        self.completed = completed


class Program:
    """A program that runs on a node."""

    def __init__(self, node: Node, number: int, arguments: Sequence[str], window: int | None = None) -> None:
        """Made by `Node.spawn`."""
        self._node = node
        self._window = window
        self._pieces: asyncio.Queue[messages.Output | messages.OutputClosed | messages.Exited] = (
            asyncio.Queue()
        )
        self._number = number
        self.arguments = tuple(arguments)
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.lines: deque[str] = deque(maxlen=_LOG_LINES)
        self._partial = {False: b"", True: b""}
        self._changed = asyncio.Event()
        self._exited: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._output_closed = asyncio.Event()

    @property
    def running(self) -> bool:
        """Whether it has not ended yet."""
        return not self._exited.done()

    @property
    def status(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        return self._exited.result() if self._exited.done() else None

    def log_tail(self, count: int = 15) -> str:
        """Its last printed lines."""
        return "\n".join([*self.lines, *self._unfinished_lines()][-count:])

    def _unfinished_lines(self) -> list[str]:
        return [part.decode(errors="replace") for part in self._partial.values() if part]

    async def ended(self) -> int:
        """Waits without a bound for its end; gives its status."""
        return await asyncio.shield(self._exited)

    async def wait(self, timeout: float) -> Completed:
        """Waits for its end and for its output; raises NodeError after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                status = await asyncio.shield(self._exited)
        except TimeoutError:
            raise NodeError(
                f"{self._node.name}: {' '.join(self.arguments)} did not end within {timeout:g} s; "
                f"its last lines:\n{self.log_tail()}"
            ) from None
        # A daemon's children may hold its output open, so this is waited for with a bound.
        try:
            async with asyncio.timeout(_OUTPUT_GRACE):
                await self._output_closed.wait()
        except TimeoutError:
            pass
        return Completed(status, bytes(self.stdout), bytes(self.stderr))

    async def line(self, pattern: str, timeout: float) -> str:
        """Waits for a printed line in which the regular expression is found.

        Raises NodeError, with the program's last lines, when it ends or the time is over first.
        """
        expression = re.compile(pattern)
        try:
            async with asyncio.timeout(timeout):
                while True:
                    self._changed.clear()
                    for line in (*self.lines, *self._unfinished_lines()):
                        if expression.search(line):
                            return line
                    if not self.running and self._output_closed.is_set():
                        raise NodeError(
                            f"{self._node.name}: {self.arguments[0]} ended with {self.status} before it was "
                            f"ready; its last lines:\n{self.log_tail()}"
                        )
                    await self._changed.wait()
        except TimeoutError:
            raise NodeError(
                f"{self._node.name}: {self.arguments[0]} was not ready within {timeout:g} s; "
                f"its last lines:\n{self.log_tail()}"
            ) from None

    async def pieces(self) -> AsyncGenerator[messages.Output]:
        """Its output as it comes, for a program that was spawned with an `output_window`.

        Ends with the output, or when the program has ended and nothing more comes from what it left behind.
        Raises NodeError when the node goes.
        """
        assert self._window is not None
        untold = 0
        while True:
            try:
                async with asyncio.timeout(None if self.running else _OUTPUT_GRACE):
                    event = await self._pieces.get()
            except TimeoutError:
                return
            if isinstance(event, messages.OutputClosed):
                return
            if isinstance(event, messages.Exited):
                continue
            yield event
            untold += len(event.data)
            # Told in good time, so that the program never waits while nobody is busy with its output.
            if untold >= self._window // 2:
                await self._node.call(messages.TakeOutput(self._number, untold), messages.Done)
                untold = 0

    async def signal(self, number: int) -> None:
        """Signals its process group."""
        await self._node.call(messages.SignalProgram(self._number, number), messages.Done)

    async def input(self, data: bytes, *, close: bool = False, timeout: float | None = 60.0) -> None:
        """Feeds its standard input, and returns when the program's side has taken it."""
        await self._node.call(messages.Input(self._number, data, close), messages.Done, timeout)

    async def resize(self, rows: int, columns: int) -> None:
        """Tells its terminal its new size."""
        await self._node.call(messages.Resize(self._number, rows, columns), messages.Done)

    async def stop(self, timeout: float = 3.0) -> Completed:
        """Asks it to end, and after `timeout` seconds kills it; proves that it is gone."""
        for number in (15, 9):
            if self.running:
                try:
                    await self.signal(number)
                except NodeError:
                    # It ended between the look and the signal, or the node itself did.
                    if self.running:
                        raise
            try:
                async with asyncio.timeout(timeout):
                    await asyncio.shield(self._exited)
                    break
            except TimeoutError:
                continue
        return await self.wait(timeout)

    def take(self, event: messages.Output | messages.OutputClosed | messages.Exited) -> None:
        """Takes in what the agent reports of this program."""
        match event:
            case messages.Output() if self._window is not None:
                pass
            case messages.Output():
                (self.stderr if event.error_stream else self.stdout).extend(event.data)
                *complete, rest = (self._partial[event.error_stream] + event.data).split(b"\n")
                self._partial[event.error_stream] = rest
                self.lines.extend(line.decode(errors="replace").rstrip("\r") for line in complete)
            case messages.OutputClosed():
                self._output_closed.set()
            case messages.Exited():
                self.end(event.code if event.code is not None else -(event.signal or 0))
        self._changed.set()
        if self._window is not None:
            self._pieces.put_nowait(event)

    def end(self, status: int) -> None:
        """Marks it as ended."""
        if not self._exited.done():
            self._exited.set_result(status)

    def node_is_gone(self) -> None:
        """Marks it as ended together with its node."""
        self.end(-9)
        self.take(messages.OutputClosed(self._number))


class Traffic(Generic[Outcome]):
    """A traffic job under way on a node."""

    def __init__(self, node: Node, number: int, port: int | None, outcome_type: type[Outcome]) -> None:
        """Made by `Node.start_traffic`."""
        self._node = node
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
            raise NodeError(f"{self._node.name}: traffic did not end within {timeout:g} s") from None
        return msgspec.msgpack.decode(raw, type=self._outcome_type)

    async def stop(self) -> None:
        """Ends the job early; its outcome still arrives."""
        await self._node.call(messages.StopTraffic(self._number), messages.Done)

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
            self._result.set_exception(NodeError(f"{self._node.name}: {message}"))
            # Whoever still wants the outcome gets the error; nobody need ask.
            self._result.exception()


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

    async def identify(self, timeout: float = 10.0) -> messages.Identity:
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
        program = Program(self, number, arguments, output_window)
        self._programs[number] = program
        # The program may have printed or ended before its number came back.
        for event in self._early.pop(number, []):
            self._take(event)
        return program

    async def run(
        self,
        *arguments: str,
        timeout: float = 10.0,
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

    async def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Writes a file whole, with its parents."""
        await self.call(messages.WriteFile(path, data, mode), messages.Done)

    async def configure(self, *operations: messages.NetworkOperation) -> None:
        """Changes the node's network, in order."""
        if operations:
            await self.call(messages.ConfigureNetwork(list(operations)), messages.Done)

    async def counters(self) -> messages.Counters:
        """All counters at this moment."""
        return await self.call(messages.ReadCounters(), messages.Counters)

    async def start_capture(self, interface: str, markers: Sequence[bytes] = (), keep: int = 0) -> Capture:
        """Watches an interface from now on."""
        request = messages.StartCapture(interface, list(markers), keep)
        return Capture(self, (await self.call(request, messages.CaptureStarted)).capture)

    async def start_traffic(self, job: msgspec.Struct, outcome_type: type[Outcome]) -> Traffic[Outcome]:
        """Starts a traffic job of the load engine; raises NodeError when it cannot be started."""
        raw = msgspec.Raw(msgspec.msgpack.encode(job))
        started = await self.call(messages.StartTraffic(raw), messages.TrafficStarted)
        traffic = Traffic(self, started.traffic, started.port, outcome_type)
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


class Capture:
    """A capture under way."""

    def __init__(self, node: Node, number: int) -> None:
        """Made by `Node.start_capture`."""
        self._node = node
        self._number = number

    async def stop(self) -> messages.CaptureReport:
        """Ends it, and gives what it saw."""
        return await self._node.call(messages.StopCapture(self._number), messages.CaptureReport)
