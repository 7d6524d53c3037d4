"""The messages between a command and the process that holds a lab: MessagePack in length-prefixed frames.

A connection carries one request. Running a program then goes on in both directions until it has ended.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec

from tunnelbench.lab.messages import TerminalSize

Message = TypeVar("Message")

_LONGEST_FRAME = 4 << 20


class Describe(msgspec.Struct, frozen=True, tag=True):
    """Asks for the lab's description."""


class TakeDown(msgspec.Struct, frozen=True, tag=True):
    """Asks for the lab's end; answered with `Gone` when nothing of it is left."""


class Execute(msgspec.Struct, frozen=True, tag=True):
    """Runs a program on a node; on a terminal of a size where one is given."""

    node: str
    arguments: list[str]
    environment: dict[str, str] = {}
    terminal: TerminalSize | None = None


class Feed(msgspec.Struct, frozen=True, tag=True):
    """Bytes for the program's standard input; none ends it. The next waits for `Fed`."""

    data: bytes


class Signal(msgspec.Struct, frozen=True, tag=True):
    """Signals the program's process group."""

    number: int


class Resize(msgspec.Struct, frozen=True, tag=True):
    """Gives the program's terminal a new size."""

    size: TerminalSize


Request = Describe | TakeDown | Execute | Feed | Signal | Resize


class Node(msgspec.Struct, frozen=True):
    """One node of an open lab; addresses as text, under which the others know it."""

    name: str
    runtime: str
    kernel: str
    addresses: list[str]


class Description(msgspec.Struct, frozen=True, tag=True):
    """An open lab."""

    name: str
    process_id: int
    tunnel: str
    topology: str
    systems: str
    """The images of gateways and hosts, in words."""
    mtu: int
    runtime: str
    reason: str
    """Why the gateways run where they run."""
    proof: str
    """What was seen on the wire between the gateways when the tunnel had come up."""
    nodes: list[Node]
    trouble: str | None = None
    """What has gone wrong since it came up."""
    hint: str | None = None
    """What to know before traffic is sent."""


class ComingUp(msgspec.Struct, frozen=True, tag=True):
    """The lab is not ready yet; what is being done."""

    step: str


class Output(msgspec.Struct, frozen=True, tag=True):
    """A piece of the program's output."""

    error_stream: bool
    data: bytes


class Fed(msgspec.Struct, frozen=True, tag=True):
    """The program's side has taken what it was fed; `more` says whether it can take more."""

    more: bool


class Ended(msgspec.Struct, frozen=True, tag=True):
    """The program ended: exit code, negative for a signal."""

    status: int


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The request can't be carried out, and why; what to do where there is advice."""

    message: str
    advice: str | None = None


class Gone(msgspec.Struct, frozen=True, tag=True):
    """Nothing of the lab is left."""


Reply = Description | ComingUp | Output | Fed | Ended | Failed | Gone

REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
REPLIES: msgspec.msgpack.Decoder[Reply] = msgspec.msgpack.Decoder(Reply)

_encoder = msgspec.msgpack.Encoder()


def frame(message: Request | Reply) -> bytes:
    """A message as it goes over the stream."""
    encoded = _encoder.encode(message)
    return len(encoded).to_bytes(4, "big") + encoded


async def read_frame(
    stream: asyncio.StreamReader, decoder: msgspec.msgpack.Decoder[Message]
) -> Message | None:
    """The next message, None at the stream's end.

    Raises msgspec.DecodeError for what is none.
    """
    try:
        length = int.from_bytes(await stream.readexactly(4), "big")
        if length > _LONGEST_FRAME:
            raise msgspec.DecodeError(f"a message of {length} bytes is too long")
        return decoder.decode(await stream.readexactly(length))
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
