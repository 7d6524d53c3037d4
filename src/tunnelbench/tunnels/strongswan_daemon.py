"""strongSwan's daemon charon on two gateways: started, told what to protect, and asked for it.

For all VPNs whose packets IPsec protects with keys from IKE (RFC 7296, RFC 2409).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.tunnels import xfrm
from tunnelbench.tunnels.base import Gateway
from tunnelbench.tunnels.certificates import Authority
from tunnelbench.tunnels.daemons import all_print, place_files, seconds_between, start_daemon
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
READY_SECONDS = 20.0
"""How long a step may take; idle none takes more than one."""

_ENVIRONMENT = {"STRONGSWAN_CONF": f"{DIRECTORY}/strongswan.conf", "SWANCTL_DIR": DIRECTORY}
_LOOK_EVERY_SECONDS = 0.02


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
        old = await self._pairs()
        for child in self.protection.children:
            await self.ends[0].rekey(child.name)
        deadline = asyncio.get_running_loop().time() + READY_SECONDS
        while not await self._replaced(old):
            if asyncio.get_running_loop().time() > deadline:
                log = self.programs[0].log_tail()
                raise NodeError(f"no new keys within {READY_SECONDS:g} s; the last lines:\n{log}")
            await asyncio.sleep(_LOOK_EVERY_SECONDS)

    async def _replaced(self, old: frozenset[frozenset[str]]) -> bool:
        new = await self._pairs()
        return len(new) == len(old) and not new & old

    async def _pairs(self) -> frozenset[frozenset[str]]:
        """The indices of the associations that both ends have in use, by pairs; empty where they differ."""
        left, right = [
            frozenset(child.indices for child in installed(associations))
            for _, associations in await asyncio.gather(*(end.associations() for end in self.ends))
        ]
        return left if left == right else frozenset()


async def protect(
    left: Gateway, right: Gateway, protection: Protection, cleanup: AsyncExitStack
) -> Protected:
    """Starts both daemons, and has the left one initiate; returns once both have all associations.

    Keys are fresh on each call. What the daemons leave behind in a kernel when they die goes with `cleanup`.
    """
    credentials = _fresh_credentials(left, right, protection)
    ends = [await _start(end, protection, credentials[end.site.gateway], cleanup) for end in (left, right)]
    await all_print("loaded plugins", [end.program for end in ends], READY_SECONDS)
    for end in ends:
        await end.load()
    first, *_ = [await _agree(child.name, ends) for child in protection.children]
    return Protected((ends[0], ends[1]), protection, handshake_seconds=first)


async def _agree(child: str, ends: Sequence[Charon]) -> float | None:
    """Has the first end initiate; returns the seconds until both have the child."""
    programs = [end.program for end in ends]
    established = rf"CHILD_SA {child}\{{\d+\}} established"
    try:
        await ends[0].initiate(child)
        await all_print(established, programs, READY_SECONDS)
    except NodeError as error:
        logs = "".join(f"\n{end.node.name}:\n{end.program.log_tail()}" for end in ends)
        raise NodeError(f"{error}; the last lines of both ends:{logs}") from error
    return seconds_between(programs[0], "initiating", programs, established)


def _fresh_credentials(left: Gateway, right: Gateway, protection: Protection) -> Mapping[str, Credentials]:
    names = [end.site.gateway for end in (left, right)]
    if protection.authentication == "psk":
        return dict.fromkeys(names, Credentials(shared=secrets.token_hex(32)))
    authority = Authority()
    return {
        name: Credentials(own=authority.issue(name, "server"), authority=authority.certificate)
        for name in names
    }


async def _start(
    end: Gateway, protection: Protection, credentials: Credentials, cleanup: AsyncExitStack
) -> Charon:
    files = {
        "strongswan.conf": daemon_settings(protection).encode(),
        "swanctl.conf": connections(end, protection, credentials).encode(),
        **credentials.files,
    }
    await place_files(end.node, DIRECTORY, files, cleanup)
    if protection.data_plane == "kernel":
        # A daemon that was killed leaves its associations and policies.
        cleanup.push_async_callback(xfrm.forget, end.node)
    program = await start_daemon(end.node, cleanup, "charon-systemd", environment=_ENVIRONMENT)
    return Charon(end.node, program)
