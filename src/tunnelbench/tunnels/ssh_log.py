"""What OpenSSH is told to log: how connections begin and end and what they agree on, but no single packet.

At the level at which it tells of key exchanges (DEBUG1) it also has a line for each datagram that it drops
because the channel's window is full, and from INFO on one for each that came although it was. Under too much
UDP these are many thousands a second, whose cost would count as the tunnel's. Releases from 8.5 on can log
chosen functions at every level, and of all else only errors (`LogVerbose` in ssh_config(5), sshd_config(5)).
What older ones write about datagrams is dropped before it fills what is kept of a program's output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tunnelbench.lab.node import Node

_BOTH = (
    "kex.c:kex_exchange_identification*",
    "kex.c:choose_kex*",
    "kex.c:kex_choose_conf*",
    "kex.c:*newkeys*",
    "packet.c:ssh_packet_disconnect*",
    "packet.c:ssh_packet_read_poll_seqnr*",
    "packet.c:sshpkt_vfatal*",
)
_CLIENT = (
    "sshconnect.c:ssh_connect_direct*",
    "sshconnect2.c:ssh_userauth2*",
    "clientloop.c:client_loop()*",
    *_BOTH,
)
_SERVER = ("sshd.c:listen_on_addrs*", "auth.c:auth_log()*", "serverloop.c:server_request_tun*", *_BOTH)
_ABOUT_DATAGRAMS = "datagram too big|rcvd too much data"


@dataclass(frozen=True)
class Log:
    """How a program of OpenSSH is told to log."""

    options: Sequence[str]
    """Lines of ssh_config(5) or sshd_config(5)."""
    has_datagrams: bool
    """Whether it writes about each datagram that is dropped."""

    def command(self, *arguments: str) -> Sequence[str]:
        """What to start so that the program has these arguments, and nothing about datagrams comes out."""
        if not self.has_datagrams:
            return arguments
        return ("sh", "-c", '"$@" 2>&1 | grep --line-buffered -Ev "$0"', _ABOUT_DATAGRAMS, *arguments)


async def client_log(node: Node, program: str) -> Log:
    """Of a client program on a node."""
    return await _log(node, program, _CLIENT)


async def server_log(node: Node) -> Log:
    """Of the server on a node, which is of the same release as the client there."""
    return await _log(node, "ssh", _SERVER)


async def _log(node: Node, program: str, functions: Sequence[str]) -> Log:
    tried = await node.run(program, "-G", "-F", "none", "-oLogVerbose=kex.c:*", "localhost", check=False)
    if tried.status != 0:
        return Log(("LogLevel DEBUG1",), has_datagrams=True)
    return Log(("LogLevel ERROR", f"LogVerbose {','.join(functions)}"), has_datagrams=False)
