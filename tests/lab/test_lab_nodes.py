"""The agent on one node in namespaces: programs, files, counters, captures, and how it takes nonsense."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio
from lab_processes import descendants, survivors

from tunnelbench.errors import UserError
from tunnelbench.lab.agent_program import start_agent
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.image import find
from tunnelbench.lab.lab import own_identities
from tunnelbench.lab.messages import Call, Identify, Incoming, NewFile, Request, SetLink, Spawn, TerminalSize
from tunnelbench.lab.namespace import NamespaceNode, start_namespace_node
from tunnelbench.lab.node import FETCH_BYTES, Node
from tunnelbench.lab.program import ProgramError

pytestmark = [pytest.mark.lab, pytest.mark.asyncio(loop_scope="module")]

HANGS_SECONDS = 60.0
TOO_LONG = (16 << 20) + 1


async def start() -> NamespaceNode:
    return await start_namespace_node("node", find().root, user_namespace=own_identities())


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def node() -> AsyncGenerator[Node]:
    outer = await start()
    yield outer.node
    await outer.close()


async def test_a_program_gets_its_arguments_environment_files_and_input(node: Node) -> None:
    program = await node.spawn(
        "sh", "-c", 'cat - /run/given/file; echo "$1 $WORD" >&2; exit 3', "sh", "two words",
        environment={"WORD": "given"},
        files=[NewFile("/run/given/file", b"of file\n", 0o600)],
        input=b"of input, ",
    )  # fmt: skip
    completed = await program.wait(HANGS_SECONDS)
    assert (completed.status, completed.text, completed.error_text) == (
        3,
        "of input, of file\n",
        "two words given\n",
    )
    mode = await node.run("stat", "-c", "%a", "/run/given/file")
    assert mode.text == "600\n"


async def test_a_failed_program_is_told_with_its_last_words(node: Node) -> None:
    with pytest.raises(ProgramError, match=r"ended with 2: .*no-such-file"):
        await node.run("ls", "/no-such-file")


async def test_a_missing_program_is_told_by_name(node: Node) -> None:
    with pytest.raises(NodeError, match=r"no-such-program could not be started"):
        await node.spawn("no-such-program")


async def test_a_program_fed_in_pieces_ends_with_its_input(node: Node) -> None:
    program = await node.spawn("sort", keep_input=True)
    for piece in (b"b\n", b"a\n"):
        await program.input(piece)
    assert program.running
    await program.input(b"", close=True)
    assert (await program.wait(HANGS_SECONDS)).stdout == b"a\nb\n"


async def test_a_signal_ends_the_whole_group_and_is_the_status(node: Node) -> None:
    program = await node.spawn("sh", "-c", "sleep 1000 & echo ready; wait")
    await program.line("ready", HANGS_SECONDS)
    await program.signal(signal.SIGKILL)
    assert (await program.wait(HANGS_SECONDS)).status == -signal.SIGKILL
    assert (await node.run("pgrep", "sleep", check=False)).text == ""


async def test_a_program_that_will_not_end_is_killed(node: Node) -> None:
    program = await node.spawn("sh", "-c", "trap '' TERM; echo ready; while true; do sleep 0.05; done")
    await program.line("ready", HANGS_SECONDS)
    assert (await program.stop(timeout=0.2)).status == -signal.SIGKILL


async def test_waiting_for_a_line_ends_with_the_program(node: Node) -> None:
    program = await node.spawn("sh", "-c", "echo starting; exit 4")
    with pytest.raises(NodeError, match=r"(?s)ended with 4 before it was ready.*starting"):
        await program.line("never printed", HANGS_SECONDS)


async def test_a_terminal_has_its_size_and_takes_a_new_one(node: Node) -> None:
    script = "stty size; read line; stty size; test -t 1 && echo terminal"
    program = await node.spawn("sh", "-c", script, terminal=TerminalSize(rows=30, columns=100))
    await program.line("30 100", HANGS_SECONDS)
    await program.resize(50, 120)
    await program.input(b"\n")
    text = (await program.wait(HANGS_SECONDS)).text
    assert re.findall(r"\d+ \d+", text) == ["30 100", "50 120"]
    assert "terminal" in text


async def test_output_waits_for_its_reader_and_arrives_whole(node: Node) -> None:
    window = 64 << 10
    program = await node.spawn("head", "-c", str(20 * window), "/dev/zero", output_window=window)
    await asyncio.sleep(0.2)
    # Without a reader it can't get rid of more than the window and what a pipe holds.
    assert program.running
    received = 0
    async for piece in program.pieces():
        assert piece.data.strip(b"\0") == b""
        received += len(piece.data)
    assert received == 20 * window
    assert await program.ended() == 0


async def test_output_ends_though_a_child_holds_it_open(node: Node) -> None:
    program = await node.spawn("sh", "-c", "sleep 1000 & echo done", output_window=1 << 16)
    assert b"".join([piece.data async for piece in program.pieces()]) == b"done\n"
    await node.run("pkill", "sleep")


async def test_files_are_written_and_read_whole(node: Node) -> None:
    data = os.urandom(1 << 20)
    await node.write_file("/run/some/where/file", data, 0o640)
    assert await node.read_file("/run/some/where/file", limit=2 << 20) == data
    assert len(await node.read_file("/run/some/where/file", limit=100)) == 100
    with pytest.raises(NodeError, match=r"/no/such/file could not be read"):
        await node.read_file("/no/such/file")


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def test_a_file_is_moved_from_a_node_piece_by_piece(node: Node, tmp_path: Path) -> None:
    for size in (0, 10, FETCH_BYTES, 3 * FETCH_BYTES + 1):
        data = os.urandom(size)
        await node.write_file("/run/large", data)
        target = tmp_path / "moved"
        assert await node.fetch_file("/run/large", target) == size
        assert target.read_bytes() == data
        assert target.stat().st_mode & 0o777 == 0o600
        with pytest.raises(NodeError, match="could not be read"):
            await node.read_file("/run/large")


async def test_a_file_that_cannot_be_moved_leaves_nothing_behind(node: Node, tmp_path: Path) -> None:
    with pytest.raises(NodeError, match=r"/no/such/file could not be read"):
        await node.fetch_file("/no/such/file", tmp_path / "moved")
    assert names_in(tmp_path) == []
    await node.write_file("/run/kept", b"x")
    with pytest.raises(UserError, match="can't be written: No such file or directory"):
        await node.fetch_file("/run/kept", tmp_path / "missing" / "moved")
    assert await node.read_file("/run/kept") == b"x"


async def test_nothing_written_reaches_the_image(node: Node) -> None:
    await node.write_file("/etc/written-by-a-node", b"x")
    assert not (find().root / "etc/written-by-a-node").exists()


async def test_counters_count(node: Node) -> None:
    await node.configure(SetLink("lo", up=True))
    before, sent_before = await node.counters(), await node.interfaces()
    await node.run("ping", "-c", "3", "-i", "0.01", "127.0.0.1")
    await node.run("sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done", timeout=HANGS_SECONDS)
    after, sent = await node.counters(), await node.interfaces()
    assert sent["lo"].sent_packets - sent_before["lo"].sent_packets == 6
    # The loop's process is dead, and what it cost still counts.
    assert after.processes.user > before.processes.user
    assert after.clock > before.clock


async def test_a_capture_counts_protocols_and_finds_markers(node: Node) -> None:
    await node.configure(SetLink("lo", up=True))
    capture = await node.start_capture("lo", [b"\xca\xfe\xf0\x0d", b"never sent"], keep=2)
    await node.run("ping", "-c", "4", "-i", "0.01", "-p", "cafef00d", "127.0.0.1")
    report = await capture.stop()
    requests = [flow for flow in report.flows if flow.protocol == "ipv4 icmp" and flow.outgoing]
    assert [(flow.packets, flow.marked) for flow in requests] == [(8, [8, 0])]
    assert report.dropped == 0
    assert len(report.first) == 2
    assert b"\xca\xfe\xf0\x0d" in report.first[0].data


async def test_a_refused_change_of_the_network_names_what_was_refused(node: Node) -> None:
    with pytest.raises(NodeError, match="no-such-link"):
        await node.configure(SetLink("no-such-link", up=True))


class RawNode:
    """An agent spoken to byte by byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, frame: bytes) -> None:
        self._writer.write(len(frame).to_bytes(4, "big") + frame)
        await self._writer.drain()

    async def receive(self) -> Incoming:
        async with asyncio.timeout(HANGS_SECONDS):
            length = int.from_bytes(await self._reader.readexactly(4), "big")
            return msgspec.msgpack.decode(await self._reader.readexactly(length), type=Incoming)

    async def call(self, number: int, request: Request) -> Incoming:
        await self.send(msgspec.msgpack.encode(Call(number, request)))
        return await self.receive()


@pytest_asyncio.fixture(loop_scope="module")
async def raw_node() -> AsyncGenerator[RawNode]:
    ours, theirs = socket.socketpair()
    with theirs:
        process = await start_agent(
            *("enclose", "--stream", str(theirs.fileno()), "--root", str(find().root), "--host-name", "raw"),
            *own_identities(),
            descriptors=[theirs.fileno()],
        )
    reader, writer = await asyncio.open_connection(sock=ours)
    node = RawNode(reader, writer)
    await node.receive()
    yield node
    writer.close()
    await process.communicate()


@pytest.mark.parametrize(
    "nonsense",
    [
        b"\xc1",
        b"no message",
        msgspec.msgpack.encode({"id": 1, "request": {"type": "dance"}}),
        msgspec.msgpack.encode({"id": 1, "request": {"type": "identify", "please": True}}),
        msgspec.msgpack.encode({"id": -1, "request": {"type": "identify"}}),
        msgspec.msgpack.encode({"id": 1, "request": {"type": "spawn", "arguments": "sh"}}),
        msgspec.msgpack.encode([1, 2, 3]),
        bytes(TOO_LONG),
    ],
    ids=["no code", "text", "unknown", "unknown field", "number", "type", "array", "too long"],
)
async def test_nonsense_is_answered_with_an_error_and_the_node_goes_on(
    raw_node: RawNode, nonsense: bytes
) -> None:
    await raw_node.send(nonsense)
    refused = await raw_node.receive()
    assert refused.id is None
    assert type(refused.answer).__name__ == "Error"
    answered = await raw_node.call(7, Identify())
    assert answered.id == 7
    assert type(answered.answer).__name__ == "Identity"


async def test_a_program_without_a_name_is_refused(raw_node: RawNode) -> None:
    assert type((await raw_node.call(1, Spawn([]))).answer).__name__ == "Error"
    assert type((await raw_node.call(2, Identify())).answer).__name__ == "Identity"


async def test_when_the_stream_ends_so_does_everything() -> None:
    outer = await start()
    family = await outer.node.spawn("sh", "-c", "setsid sleep 1000 & sleep 1000 & echo up; exec sleep 1000")
    await family.line("up", HANGS_SECONDS)
    daemon = await outer.node.spawn("sh", "-c", "(setsid sh -c 'trap \"\" TERM HUP; sleep 1000' &) ; echo up")
    await daemon.line("up", HANGS_SECONDS)
    processes = [outer.process_id, *descendants(outer.process_id)]
    assert len(processes) > 4
    await outer.node.close()
    assert survivors(processes) == []
    await outer.close()


async def test_calls_to_a_node_that_is_gone_say_so() -> None:
    outer = await start()
    waiting = asyncio.create_task(outer.node.run("sleep", "1000", timeout=HANGS_SECONDS))
    await asyncio.sleep(0.1)
    os.kill(outer.process_id, signal.SIGKILL)
    with pytest.raises(NodeError, match="node is gone"):
        await waiting
    assert not outer.node.alive
    with pytest.raises(NodeError, match="node is gone"):
        await outer.node.identify()
    await outer.close()
