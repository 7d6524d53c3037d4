"""The `namespace` runtime: a node as process 1 of its own namespaces on this machine's kernel."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from tunnelbench.errors import UserError
from tunnelbench.lab.agent_program import start_agent
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.node import Node

_START_SECONDS = 10.0
_END_SECONDS = 5.0


class NamespaceNode:
    """A running node and its process on this machine."""

    def __init__(self, node: Node, process: asyncio.subprocess.Process, process_id: int) -> None:
        """Made by `start_namespace_node`."""
        self.node = node
        self.process_id = process_id
        """Process 1 of the node, by its number on this machine."""
        self._process = process

    async def close(self) -> None:
        """Ends the node and everything on it, and returns when it is gone."""
        await self.node.power_off()
        await self.node.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.communicate()
        except TimeoutError:
            self._process.kill()
            await self._process.communicate()


async def start_namespace_node(
    name: str,
    root: Path,
    *,
    user_namespace: Sequence[str],
    descriptors: Sequence[int] = (),
) -> NamespaceNode:
    """Starts a node on the tree `root`.

    `user_namespace` are the agent's arguments that say whose identities it has; `descriptors` stay open in
    it under their numbers, for programs to inherit. Raises UserError when the kernel refuses.
    """
    _check_owner(root)
    ours, theirs = socket.socketpair()
    with theirs:
        process = await start_agent(
            *("enclose", "--stream", str(theirs.fileno()), "--root", str(root), "--host-name", name),
            *user_namespace,
            descriptors=(theirs.fileno(), *descriptors),
        )
    assert process.stdout is not None
    assert process.stderr is not None
    first_line = await process.stdout.readline()
    if not first_line.strip().isdigit():
        ours.close()
        complaint = (await process.stderr.read()).decode(errors="replace").strip()
        await process.wait()
        raise UserError(
            f"node {name} could not be started: {complaint or 'its agent ended at once'}",
            advice="See what this machine lacks: tunnelbench doctor",
        )
    node = Node(name)
    try:
        await node.open(ours, _START_SECONDS)
    except NodeError as error:
        await node.close()
        complaint = (await process.stderr.read()).decode(errors="replace").strip()
        await process.wait()
        raise UserError(f"node {name} could not be started: {complaint or error}") from error
    return NamespaceNode(node, process, int(first_line))


def _check_owner(root: Path) -> None:
    """An ordinary user is root over files of their own alone, so nodes could change none of another's."""
    if os.geteuid() not in (0, root.stat().st_uid):
        raise UserError(
            f"the image {root.parent} belongs to another user",
            advice="Use images of your own: unset TUNNELBENCH_CACHE or set it to a directory of yours, and "
            "build one: tunnelbench image build",
        )
