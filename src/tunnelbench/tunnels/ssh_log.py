"""What OpenSSH is told to log: how connections begin and end and what they agree on, but no single packet.

At the level at which it tells of key exchanges (DEBUG1) it also has a line for each datagram that it drops
because the channel's window is full, and from INFO on one for each that came although it was. Under too much
UDP these are many thousands a second, whose cost would count as the tunnel's. Releases from 8.5 on can log
chosen functions at every level, and of all else only errors (`LogVerbose` in ssh_config(5), sshd_config(5)).
"""

from __future__ import annotations

from collections.abc import Sequence

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
_EVERYTHING = ("LogLevel DEBUG1",)


async def client_log_options(node: Node, program: str) -> Sequence[str]:
    """Lines of ssh_config(5) for a client program on a node."""
    return _only(_CLIENT) if await _can_choose(node, program) else _EVERYTHING


async def server_log_options(node: Node) -> Sequence[str]:
    """Lines of sshd_config(5) for the server on a node, which is of the same release as the client there."""
    return _only(_SERVER) if await _can_choose(node, "ssh") else _EVERYTHING


def _only(functions: Sequence[str]) -> Sequence[str]:
    return ("LogLevel ERROR", f"LogVerbose {','.join(functions)}")


async def _can_choose(node: Node, program: str) -> bool:
    tried = await node.run(program, "-G", "-F", "none", "-oLogVerbose=kex.c:*", "localhost", check=False)
    return tried.status == 0
