"""Uses labs that another process holds open: brings that process up, asks it, runs programs through it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import termios
import threading
import tty
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager

from tunnelbench.errors import UserError
from tunnelbench.lab import holder_messages as messages
from tunnelbench.lab import rendezvous
from tunnelbench.lab.messages import TerminalSize

_INPUT_PIECE = 16 << 10
_RELAYED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_LAST_WORDS = 2000


def bring_up(command: Sequence[str], wish: bytes, report: Callable[[str], None]) -> messages.Description:
    """Starts `command`, which holds a lab as `wish` on its standard input says, and waits until it is ready.

    Raises UserError with what went wrong there. Interrupted, takes down what has come up so far.
    """
    holder = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # Ctrl-C reaches the lab as a request to go, in order.
        start_new_session=True,
    )
    try:
        return asyncio.run(_await_ready(holder, wish, report))
    except BaseException:
        if holder.poll() is None:
            holder.terminate()
        holder.wait()
        raise


async def _await_ready(
    holder: subprocess.Popen[bytes], wish: bytes, report: Callable[[str], None]
) -> messages.Description:
    assert holder.stdin is not None
    assert holder.stdout is not None
    assert holder.stderr is not None
    holder.stdin.write(wish)
    holder.stdin.close()
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), holder.stdout
    )
    while True:
        reply = await messages.read_frame(reader, messages.REPLIES)
        match reply:
            case messages.ComingUp():
                report(reply.step)
            case messages.Description():
                return reply
            case messages.Failed():
                raise UserError(reply.message, advice=reply.advice)
            case _:
                words = holder.stderr.read().decode(errors="replace").strip()[-_LAST_WORDS:]
                raise UserError(f"the process that holds the lab ended; its last words were:\n{words}")


def describe(name: str) -> messages.Description | messages.ComingUp:
    """An open lab, or what is being done for it to become one; raises UserError where there is none."""
    reply = asyncio.run(_ask(name, messages.Describe()))
    assert isinstance(reply, messages.Description | messages.ComingUp)
    return reply


def take_down(name: str) -> None:
    """Takes a lab down; returns when its last process is gone. Raises UserError where there is none."""
    with rendezvous.connect(name) as stream:
        holder = os.pidfd_open(rendezvous.process_behind(stream))
    try:
        asyncio.run(_ask(name, messages.TakeDown()))
        select.select([holder], [], [])
    finally:
        os.close(holder)


async def _ask(name: str, request: messages.Request) -> messages.Reply:
    reader, writer = await asyncio.open_unix_connection(sock=rendezvous.connect(name))
    writer.write(messages.frame(request))
    reply = await messages.read_frame(reader, messages.REPLIES)
    writer.close()
    if reply is None and not isinstance(request, messages.TakeDown):
        raise UserError(f"lab {name} went down")
    return reply or messages.Gone()


def execute(
    name: str,
    node: str,
    arguments: Sequence[str],
    *,
    environment: Mapping[str, str] | None = None,
    on_terminal: bool,
) -> int:
    """Runs a program on a node of a lab, joined to this process's standard streams, signals and terminal.

    Returns its exit code, 128 and more for a signal as shells do. Raises UserError when it can't be run.
    """
    request = messages.Execute(
        node, list(arguments), dict(environment or {}), _size() if on_terminal else None
    )
    with _raw_terminal() if on_terminal else contextlib.nullcontext():
        return asyncio.run(_Relay(name, on_terminal).run(request))


class _Relay:
    """Both directions between this process and one program on a node."""

    def __init__(self, name: str, on_terminal: bool) -> None:
        self._name = name
        self._on_terminal = on_terminal
        self._may_read = threading.Semaphore(1)
        self._input_open = True
        self._ended_by: asyncio.Future[int]

    async def run(self, request: messages.Execute) -> int:
        """Runs it to its end."""
        reader, self._writer = await asyncio.open_unix_connection(sock=rendezvous.connect(self._name))
        self._ended_by = asyncio.get_running_loop().create_future()
        self._send(request)
        self._relay_signals()
        # Nothing else can wait for every kind of standard input: terminals, pipes and files.
        threading.Thread(
            target=self._read_input, args=[asyncio.get_running_loop()], daemon=True, name="input"
        ).start()
        receiving = asyncio.create_task(self._receive(reader))
        try:
            await asyncio.wait([receiving, self._ended_by], return_when=asyncio.FIRST_COMPLETED)
            if receiving.done():
                return await receiving
            return 128 + self._ended_by.result()
        finally:
            receiving.cancel()
            self._writer.close()

    async def _receive(self, reader: asyncio.StreamReader) -> int:
        while True:
            reply = await messages.read_frame(reader, messages.REPLIES)
            match reply:
                case messages.Output():
                    try:
                        await asyncio.to_thread(_write, 2 if reply.error_stream else 1, reply.data)
                    except BrokenPipeError:
                        return 128 + signal.SIGPIPE
                case messages.Fed():
                    self._input_open = reply.more
                    self._may_read.release()
                case messages.Ended():
                    return reply.status if reply.status >= 0 else 128 - reply.status
                case messages.Failed():
                    raise UserError(reply.message, advice=reply.advice)
                case messages.ComingUp():
                    raise UserError(f"lab {self._name} is not ready: {reply.step}")
                case _:
                    raise UserError(f"lab {self._name} went down")

    def _relay_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in _RELAYED:
            loop.add_signal_handler(number, self._signal, number)
        if self._on_terminal:
            loop.add_signal_handler(signal.SIGWINCH, lambda: self._send(messages.Resize(_size())))

    def _signal(self, number: signal.Signals) -> None:
        if self._on_terminal and number in _ENDING and not self._ended_by.done():
            # A shell on a terminal ignores these; going away hangs up on it.
            self._ended_by.set_result(number)
        else:
            self._send(messages.Signal(number))

    def _read_input(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            self._may_read.acquire()
            if not self._input_open:
                return
            try:
                data = os.read(0, _INPUT_PIECE)
            except OSError:
                data = b""
            with contextlib.suppress(RuntimeError):  # the loop is closed once the program has ended
                loop.call_soon_threadsafe(self._send, messages.Feed(data))
            if not data:
                return

    def _send(self, request: messages.Request) -> None:
        self._writer.write(messages.frame(request))


def _write(descriptor: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(descriptor, rest) :]
        except BlockingIOError:
            select.select([], [descriptor], [])


def _size() -> TerminalSize:
    size = os.get_terminal_size(0)
    return TerminalSize(rows=size.lines, columns=size.columns)


@contextmanager
def _raw_terminal() -> Generator[None]:
    """Every key goes to the program, which echoes and interprets them on its own terminal."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
