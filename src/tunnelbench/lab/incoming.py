"""Has a kernel node hear only what comes in on a link, not what it sends there itself.

User Mode Linux reads a link from one raw socket and writes to it by another, so that the first one hears
what the second one sends (packet(7)). Its own filter against that is never attached: its `vector_net_open`
takes the success of `uml_raw_enable_qdisc_bypass` for a failure. So it gets a filter from a file.
"""

from __future__ import annotations

import struct

from tunnelbench.lab.messages import NewFile

_INSTRUCTION = struct.Struct("=HBBI")
"""Of classic BPF (linux/filter.h): code, jump if true, jump if false, constant."""
_LOAD_BYTE, _JUMP_IF_EQUAL, _RETURN = 0x30, 0x15, 0x06
_PACKET_TYPE = 0xFFFF_F000 + 4
_OUTGOING = 4
_WHOLE_PACKET = 0x0004_0000

INCOMING_ONLY = NewFile(
    "/run/incoming-only.bpf",
    b"".join(
        _INSTRUCTION.pack(*instruction)
        for instruction in (
            (_LOAD_BYTE, 0, 0, _PACKET_TYPE),
            (_JUMP_IF_EQUAL, 0, 1, _OUTGOING),
            (_RETURN, 0, 0, 0),
            (_RETURN, 0, 0, _WHOLE_PACKET),
        )
    ),
)
"""The filter as User Mode Linux takes it, for its option `bpffile`."""
