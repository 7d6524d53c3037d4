"""strongSwan's daemon charon on two gateways: started, told what to protect, and asked for it.

For all VPNs whose packets IPsec protects with keys from IKE (RFC 7296, RFC 2409).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.tunnels import xfrm
from tunnelbench.tunnels.base import Gateway
from tunnelbench.tunnels.certificates import Authority
from tunnelbench.tunnels.daemons import all_print, place_files, start_daemon
from tunnelbench.tunnels.ipsec_rekeying import Pairs, all_replaced
from tunnelbench.tunnels.strongswan_associations import IkeAssociation, installed, read_associations
from tunnelbench.tunnels.strongswan_configuration import (
    DIRECTORY,
    Credentials,
    Protection,
    connections,
    daemon_settings,
)

PROGRAMS = frozenset({"charon-systemd", "swanctl"})
"""What the image must have."""
READY_SECONDS = 60.0
"""How long a step may take; idle none takes more than one, but dozens of clients, each a kernel, do."""

_ENVIRONMENT = {"STRONGSWAN_CONF": f"{DIRECTORY}/strongswan.conf", "SWANCTL_DIR": DIRECTORY}


@dataclass(frozen=True)
class Charon:
    """A daemon that runs."""

    node: Node
    program: Program

    async def associations(self) -> tuple[str, Sequence[IkeAssociation]]:
        """What it has agreed on with its peer: in its own words, and read."""
        text = await self._swanctl("--list-sas", "--raw")
        return text, read_associations(text)

    async def load(self) -> None:
        """Has it read its connections and secrets."""
        await self._swanctl("--load-all", "--file", f"{DIRECTORY}/swanctl.conf")

    async def initiate(self, child: str) -> None:
        """Has it agree with its peer on keys for a child."""
        await self._swanctl("--initiate", "--child", child, "--timeout", str(int(READY_SECONDS)))

    async def rekey(self, child: str) -> None:
        """Has it begin to replace a child's keys."""
        await self._swanctl("--rekey", "--child", child)

    async def _swanctl(self, *arguments: str) -> str:
        command = ("swanctl", *arguments)
        done = await self.node.run(*command, environment=_ENVIRONMENT, check=False, timeout=READY_SECONDS + 5)
        if done.status != 0:
            raise NodeError(f"{self.node.name}: {' '.join(command)}: {done.error_text.strip()}")
        return done.text


@dataclass(frozen=True)
class Protected:
    """Two gateways that protect what was asked for."""

    ends: tuple[Charon, Charon]
    """The left one's first."""
    protection: Protection
    handshake_seconds: float | None
    """From the first message until both ends had their first pair of associations."""

    @property
    def programs(self) -> tuple[Program, Program]:
        """Both daemons."""
        return (self.ends[0].program, self.ends[1].program)

    async def rekey(self) -> None:
        """Has the left end replace all keys of packets; returns once both use new ones."""
        left, right = self.ends
        await rekey([left], right, [child.name for child in self.protection.children])


async def protect(
    left: Gateway, right: Gateway, protection: Protection, cleanup: AsyncExitStack
) -> Protected:
    """Starts both daemons, and has the left one initiate; returns once both have all associations.

    Keys are fresh on each call. What the daemons leave behind in a kernel when they die goes with `cleanup`.
    """
    credentials = fresh_credentials([end.site.gateway for end in (left, right)], protection)
    ends: list[Charon] = []
    for end in (left, right):
        own = credentials[end.site.gateway]
        ends.append(await start(end, protection, connections(end, protection, own), own, cleanup))
    await load_all(ends)
    client, server = ends
    first, *_ = [await agree(client, server, child.name) for child in protection.children]
    return Protected((client, server), protection, handshake_seconds=first)


async def start(
    end: Gateway, protection: Protection, connections: str, credentials: Credentials, cleanup: AsyncExitStack
) -> Charon:
    """Starts a daemon, which knows of the connections when it is told to load them."""
    files = {
        "strongswan.conf": daemon_settings(protection).encode(),
        "swanctl.conf": connections.encode(),
        **credentials.files,
    }
    await place_files(end.node, DIRECTORY, files, cleanup)
    if protection.data_plane == "kernel":
        # A daemon that was killed leaves its associations and policies.
        cleanup.push_async_callback(xfrm.forget, end.node)
    program = await start_daemon(end.node, cleanup, "charon-systemd", environment=_ENVIRONMENT)
    return Charon(end.node, program)


async def load_all(ends: Sequence[Charon]) -> None:
    """Waits for all daemons to be ready, and has them load their connections."""
    await all_print("loaded plugins", [end.program for end in ends], READY_SECONDS)
    await asyncio.gather(*(end.load() for end in ends))


async def agree(client: Charon, server: Charon, child: str, of_server: str = "") -> float | None:
    """Has the first end initiate; returns the seconds until both have the child.

    `of_server`, a regular expression, tells the server's word of this child from its words of others.
    """
    established = rf"CHILD_SA {child}\{{\d+\}} established"
    at_server = f"{established}.*{of_server}"
    try:
        await client.initiate(child)
        await all_print(established, [client.program], READY_SECONDS)
        await all_print(at_server, [server.program], READY_SECONDS)
    except NodeError as error:
        logs = "".join(f"\n{end.node.name}:\n{end.program.log_tail()}" for end in (client, server))
        raise NodeError(f"{error}; the last lines of both ends:{logs}") from error
    ends = (client.program.heard(established), server.program.heard(at_server))
    begun = client.program.heard("initiating")
    heard = [end for end in ends if end is not None]
    return max(heard) - begun if begun is not None and len(heard) == len(ends) else None


async def rekey(clients: Sequence[Charon], server: Charon, children: Sequence[str]) -> None:
    """Has all clients replace their packets' keys; returns once both ends of all use new ones."""
    current = partial(_pairs, clients, server)
    old = await current()
    for client in clients:
        for child in children:
            await client.rekey(child)
    await all_replaced(old, current, server.program, READY_SECONDS)


async def _pairs(clients: Sequence[Charon], server: Charon) -> Pairs:
    """The indices of the associations that both ends have in use, by pairs; none where they differ."""
    at_server, *at_clients = [
        frozenset(child.indices for child in installed(associations))
        for _, associations in await asyncio.gather(*(end.associations() for end in (server, *clients)))
    ]
    return at_server if at_server == frozenset().union(*at_clients) else frozenset()


def fresh_credentials(names: Sequence[str], protection: Protection) -> Mapping[str, Credentials]:
    """New certificates of one new authority by gateway; or one key that all share."""
    if protection.authentication == "psk":
        return dict.fromkeys(names, Credentials(shared=secrets.token_hex(32)))
    authority = Authority()
    return {
        name: Credentials(own=authority.issue(name, "server"), authority=authority.certificate)
        for name in names
    }
