"""OpenVPN's daemon on a node: started, asked for its suite, made to renew its keys."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.tunnels.base import Gateway, ReadBack, Variant
from tunnelbench.tunnels.daemons import place_files, printed, start_daemon
from tunnelbench.tunnels.openvpn_configuration import DIRECTORY, FILE, PORT, device
from tunnelbench.tunnels.openvpn_read_back import handshakes, read_link, read_log
from tunnelbench.tunnels.openvpn_suites import as_openvpn

READY_SECONDS = 20.0
"""How long both ends may take together; idle they take one to two."""
RENEWAL_SECONDS = 120.0
"""How long it may take to send what keys are good for, in the slowest of labs."""

_LISTENS = "link remote|Listening for incoming TCP connection"
_KEYS_MADE = "Outgoing Data Channel: "


@dataclass(frozen=True)
class End:
    """A daemon at one end of a tunnel, with what it says of one peer."""

    node: Node
    daemon: Program
    peer: str = ""
    """What the lines about the peer begin with, where there are several; empty where there is one."""


async def start(node: Node, files: Mapping[str, bytes], variant: Variant, cleanup: AsyncExitStack) -> Program:
    """Starts the daemon, and returns when it can be talked to by its peer."""
    await place_files(node, DIRECTORY, files, cleanup)
    if variant["offload"] == "yes":
        # The kernel's device stays where its daemon was killed.
        cleanup.push_async_callback(node.run, "ip", "link", "delete", device(variant), check=False)
    daemon = await start_daemon(node, cleanup, "openvpn", "--cd", DIRECTORY, "--config", FILE)
    await daemon.line(_LISTENS, READY_SECONDS)
    return daemon


async def read_back(end: End, variant: Variant) -> ReadBack:
    """What the daemon and its network interface say of the tunnel to the peer."""
    logged = read_log(printed(end.daemon), end.peer)
    shown = await end.node.run("ip", "-json", "-details", "link", "show", device(variant))
    return ReadBack(logged.suite, logged.text, {**logged.facts, **read_link(shown.text)})


def longest_handshake(daemons: Iterable[Program]) -> float | None:
    """How many seconds the slowest TLS handshake took; None where there was none."""
    return max((seconds for daemon in daemons for seconds in handshakes(printed(daemon))), default=None)


def asked(variant: Variant) -> dict[str, str]:
    """What is asked for besides the suite, and read back."""
    return {name: variant[name] for name in ("device", "carrier", "keying", "compression", "offload")}


def wire(end: Gateway, variant: Variant) -> frozenset[str]:
    """The protocol on the wire."""
    return frozenset({f"{end.outer.value} {variant['carrier']} {PORT}"})


def renews_by_volume(variant: Variant) -> bool:
    """Whether so much payload makes for new keys."""
    if variant["keying"] == "static" or variant["offload"] == "yes":
        return False
    return variant["renegotiation"] == "by-volume" or as_openvpn(variant.suite).has_small_blocks


def rekey_refusal(variant: Variant) -> str:
    """Why it can't be measured what new keys cost."""
    if variant["keying"] == "static":
        return "a static key is never renewed"
    if renews_by_volume(variant):
        return "OpenVPN has them only after megabytes of payload, which would disturb the traffic itself"
    return "OpenVPN takes no order for them, and makes them once an hour"


async def use_keys_up(
    senders: Sequence[Node], receiver: IPv4Address | IPv6Address, ends: Sequence[End]
) -> None:
    """Sends echo requests from several nodes through their tunnels until all ends have made new keys."""
    goals = {end: _keys_made(end) + 1 for end in ends}
    async with AsyncExitStack() as floods:
        for sender in senders:
            flood = await sender.spawn("ping", "-f", "-q", "-l", "16", "-s", "8000", str(receiver))
            floods.push_async_callback(flood.stop)
        for end, goal in goals.items():
            await _make_keys(end, goal)


async def _make_keys(end: End, goal: int) -> None:
    """Waits until so many keys have been made, of which some may have been before."""
    while _keys_made(end) < goal:
        now = asyncio.get_running_loop().time()
        await end.daemon.line(_KEYS_MADE, RENEWAL_SECONDS, after=now)


def _keys_made(end: End) -> int:
    return sum(_KEYS_MADE in line and end.peer in line for line in printed(end.daemon).splitlines())
