"""A program that runs on a node: its output, its end, and what can be told it."""

from __future__ import annotations

import asyncio
import math
import re
from collections import deque
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from tunnelbench.lab import messages
from tunnelbench.lab.connection import ANSWER_SECONDS, Connection, NodeError

_LOG_LINES = 10_000
"""That are kept: a server with dozens of clients may say thousands before it is asked about the first."""
_OUTPUT_GRACE = 0.5
_KEY = re.compile(r"(\bkey\b.*?[:=] ?)([0-9a-f]{16,})", re.IGNORECASE)


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


def without_keys(text: str) -> str:
    """What a program printed, with how long a key is in place of each that it calls so, in hexadecimal."""
    return _KEY.sub(lambda found: f"{found[1]}({len(found[2]) * 4} bits)", text)


class Program:
    """A program that runs on a node."""

    def __init__(
        self, connection: Connection, number: int, arguments: Sequence[str], window: int | None = None
    ) -> None:
        """Made by `Node.spawn`."""
        self._connection = connection
        self._window = window
        self._pieces: asyncio.Queue[messages.Output | messages.OutputClosed | messages.Exited] = (
            asyncio.Queue()
        )
        self._number = number
        self.arguments = tuple(arguments)
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.lines: deque[str] = deque(maxlen=_LOG_LINES)
        self._line_times: deque[float] = deque(maxlen=_LOG_LINES)
        self._line_count = 0
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
        """Its last printed lines, with keys left out."""
        return without_keys("\n".join([*self.lines, *self._unfinished_lines()][-count:]))

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
                f"{self._connection.name}: {' '.join(self.arguments)} did not end within {timeout:g} s; "
                f"its last lines:\n{self.log_tail()}"
            ) from None
        # A daemon's children may hold its output open, so this is waited for with a bound.
        try:
            async with asyncio.timeout(_OUTPUT_GRACE):
                await self._output_closed.wait()
        except TimeoutError:
            pass
        return Completed(status, bytes(self.stdout), bytes(self.stderr))

    async def line(self, pattern: str, timeout: float, *, after: float = -math.inf) -> str:
        """Waits for a printed line in which the regular expression is found.

        Passes over whole lines that came in before `after`, a time of the event loop's clock. Raises
        NodeError, with the program's last lines, when it ends or the time is over first.
        """
        expression = re.compile(pattern)
        known = 0
        try:
            async with asyncio.timeout(timeout):
                while True:
                    self._changed.clear()
                    for line in (*self._lines_after(after, known), *self._unfinished_lines()):
                        if expression.search(line):
                            return line
                    known = self._line_count
                    if not self.running and self._output_closed.is_set():
                        raise NodeError(
                            f"{self._connection.name}: {self.arguments[0]} ended with {self.status} before "
                            f"it was ready; its last lines:\n{self.log_tail()}"
                        )
                    await self._changed.wait()
        except TimeoutError:
            raise NodeError(
                f"{self._connection.name}: {self.arguments[0]} was not ready within {timeout:g} s; "
                f"its last lines:\n{self.log_tail()}"
            ) from None

    def _lines_after(self, moment: float, known: int) -> Iterator[str]:
        """Those that came in later than a moment, without so many of all that there were."""
        unknown = min(self._line_count - known, len(self.lines))
        timed = zip(self._line_times, self.lines, strict=True)
        newest = islice(timed, len(self.lines) - unknown, None)
        return (line for time, line in newest if time > moment)

    def heard(self, pattern: str) -> float | None:
        """When the newest whole line with the regular expression in it came in, on the event loop's clock.

        None where there is none among the lines that are kept.
        """
        expression = re.compile(pattern)
        newest_first = zip(reversed(self._line_times), reversed(self.lines), strict=True)
        return next((time for time, line in newest_first if expression.search(line)), None)

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
                await self._connection.call(
                    messages.TakeOutput(self._number, untold), messages.Done, ANSWER_SECONDS
                )
                untold = 0

    async def signal(self, number: int) -> None:
        """Signals its process group."""
        await self._connection.call(
            messages.SignalProgram(self._number, number), messages.Done, ANSWER_SECONDS
        )

    async def input(self, data: bytes, *, close: bool = False, timeout: float | None = 60.0) -> None:
        """Feeds its standard input, and returns when the program's side has taken it."""
        await self._connection.call(messages.Input(self._number, data, close), messages.Done, timeout)

    async def resize(self, rows: int, columns: int) -> None:
        """Tells its terminal its new size."""
        await self._connection.call(
            messages.Resize(self._number, rows, columns), messages.Done, ANSWER_SECONDS
        )

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
                self._line_times.extend([asyncio.get_running_loop().time()] * len(complete))
                self._line_count += len(complete)
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
