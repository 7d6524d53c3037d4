"""Proves a tunnel before anything is measured in it: sends marked probes, watches the wire, judges."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Iterable

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.lab import Lab
from tunnelbench.lab.node import Node
from tunnelbench.lab.topology import Family, Site
from tunnelbench.lab.traffic import (
    EchoDestination,
    Echoed,
    EchoProbe,
    EchoServe,
    IcmpEcho,
    ProbeCount,
    Probed,
    TcpEcho,
    UdpEcho,
)
from tunnelbench.study.vocabulary import Transport
from tunnelbench.tunnels.base import Established, Suite, Target, Traffic
from tunnelbench.tunnels.path import SERVICE_PORT, target
from tunnelbench.witness.evidence import Verdict
from tunnelbench.witness.verdict import Expectation, both_directions, judge

_PROBES = 12
_PAYLOAD_BYTES = 400
_COMPRESSED_PAYLOAD_BYTES = 1100
"""So much that headers and TCP's acknowledgements, which nothing compresses, don't outweigh it."""
_FRAGMENTED_PROBES = 4
_FRAGMENTED_BYTES = 3000
_KEPT_PACKETS = 40
_FIRST_ATTEMPT_SECONDS = 0.25
_MILLISECOND = 1_000_000
_SECOND = 1_000_000_000


def first_traffic(carried: Iterable[Traffic]) -> Traffic:
    """What to send first through a tunnel, which may still lose some: UDP over IPv4 where it carries that."""
    return min(carried, key=lambda traffic: (traffic[0] != "udp", traffic[1] != Family.IPV4))


async def await_first_reply(
    lab: Lab, established: Established, traffic: Traffic, seconds: float
) -> float | None:
    """Sends small probes until one comes back to each client.

    Returns how many seconds that took for the last of them, or None where one had no reply within `seconds`.
    """
    longest = 0.0
    for client in lab.topology.clients:
        after = await _first_reply(lab, client, established, traffic, seconds)
        if after is None:
            return None
        longest = max(longest, after)
    return longest


async def examine(
    lab: Lab, established: Established, suite: Suite, carried: Iterable[Traffic], seconds: float = 10.0
) -> Verdict:
    """Sends marked probes of every kind of traffic that the tunnel carries, and judges what the wire saw."""
    marker = secrets.token_bytes(16)
    captures = [
        await lab.nodes[end.node].start_capture(end.interface, [marker], _KEPT_PACKETS)
        for end in lab.topology.wire.ends
    ]
    payload_bytes = _COMPRESSED_PAYLOAD_BYTES if established.compresses else _PAYLOAD_BYTES
    kinds = [(client, traffic) for client in lab.topology.clients for traffic in sorted(carried)]
    replies = fragmented = 0
    try:
        for client, traffic in kinds:
            # A probe that cannot even connect is one that did not come back.
            with contextlib.suppress(NodeError):
                outcome = await _echo(
                    lab, client, established, traffic, count=_PROBES, interval=0,
                    payload_bytes=payload_bytes, marker=marker, until_first_reply=False, seconds=seconds,
                    timeout=2 * _SECOND,
                )  # fmt: skip
                replies += outcome.replies
            if traffic[0] == "udp":
                fragmented += await _fragmented(lab, client, established, traffic, marker, seconds)
    finally:
        reports = [await capture.stop() for capture in captures]
    read_back = await established.read_back()
    return judge(
        both_directions(*reports),
        Expectation(
            wire=established.wire,
            encrypted=suite.encrypts,
            suite=suite.name,
            suite_read_back=read_back.suite,
            read_back_text=read_back.text,
            facts=established.facts,
            facts_read_back=read_back.facts,
            payload_bytes=replies * payload_bytes + fragmented * _FRAGMENTED_BYTES,
            compresses=established.compresses,
            fragmented=fragmented,
            probes=len(kinds) * _PROBES,
            replies=replies,
            wifi_read_back=lab.wifi_read_back,
        ),
    )


async def _first_reply(
    lab: Lab, client: Site, established: Established, traffic: Traffic, seconds: float
) -> float | None:
    """After how many seconds the first reply came to one client.

    A server of UDP answers its first source alone, and that may be a load of before, of which something was
    still in the tunnel. So there are several, each for twice as long as the one before.
    """
    clock = asyncio.get_running_loop().time
    start = began = clock()
    patience = _FIRST_ATTEMPT_SECONDS if traffic[0] == "udp" else seconds
    while (left := start + seconds - began) > 0:
        patience = min(patience, left)
        outcome = await _echo(
            lab, client, established, traffic, count=max(1, int(patience * 200)), interval=5 * _MILLISECOND,
            payload_bytes=64, marker=None, until_first_reply=True, seconds=patience,
            timeout=500 * _MILLISECOND,
        )  # fmt: skip
        if outcome.first_reply_after is not None:
            return began - start + outcome.first_reply_after / _SECOND
        began, patience = clock(), 2 * patience
    return None


async def _fragmented(
    lab: Lab, client: Site, established: Established, traffic: Traffic, marker: bytes, seconds: float
) -> int:
    """How many datagrams came back that have to be cut up on their way, the marker in every piece.

    None is no refusal: some systems find out the path's MTU by losing the first ones, and some drop
    fragments altogether. What crosses the wire is looked at all the same.
    """
    with contextlib.suppress(NodeError):
        outcome = await _echo(
            lab, client, established, traffic, count=_FRAGMENTED_PROBES, interval=20 * _MILLISECOND,
            payload_bytes=_FRAGMENTED_BYTES, marker=marker, until_first_reply=False, seconds=min(seconds, 2),
            # The first ones are often lost, to the discovery of the path's MTU.
            timeout=150 * _MILLISECOND,
        )  # fmt: skip
        return outcome.replies
    return 0


async def _echo(
    lab: Lab,
    client: Site,
    established: Established,
    traffic: Traffic,
    *,
    count: int,
    interval: int,
    payload_bytes: int,
    marker: bytes | None,
    until_first_reply: bool,
    seconds: float,
    timeout: int,
) -> Probed:
    transport, family = traffic
    server = lab.topology.server
    deadline = round(seconds * _SECOND)
    aim = target(established, server, family)
    async with contextlib.AsyncExitStack() as serving:
        if transport != "icmp":  # The server's own system answers that.
            await _serve(lab.nodes[server.host], transport, family, deadline + _SECOND, serving)
        probing = await lab.nodes[client.host].start_traffic(
            EchoProbe(
                destination=_destination(transport, aim),
                plan=ProbeCount(count=count, until_first_reply=until_first_reply, deadline=deadline),
                interval=interval,
                payload_bytes=payload_bytes,
                marker=marker,
                timeout=timeout,
            ),
            Probed,
        )
        return await probing.outcome(seconds + 3)


async def _serve(
    node: Node, transport: Transport, family: Family, deadline: int, cleanup: contextlib.AsyncExitStack
) -> None:
    bind = "0.0.0.0" if family is Family.IPV4 else "[::]"
    job = EchoServe(bind=f"{bind}:{SERVICE_PORT}", protocol=transport, deadline=deadline)
    serving = await node.start_traffic(job, Echoed)
    cleanup.push_async_callback(serving.outcome, deadline / _SECOND + 2)
    cleanup.push_async_callback(serving.stop)


def _destination(transport: Transport, aim: Target) -> EchoDestination:
    if transport == "icmp":
        return IcmpEcho(str(aim.address))
    if transport == "udp":
        return UdpEcho(_host_and_port(aim))
    return TcpEcho(_host_and_port(aim), proxy=_host_and_port(aim.proxy) if aim.proxy else None)


def _host_and_port(target: Target) -> str:
    address = str(target.address)
    return f"[{address}]:{target.port}" if target.address.version == 6 else f"{address}:{target.port}"
