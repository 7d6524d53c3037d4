"""The `kernel` runtime: a node as its own Linux kernel, User Mode Linux running as an ordinary process.

That process lives in a namespace node of its own, here called its hull, which gives it its root tree, its
ends of the links to other nodes, and its end: when the hull goes, so do the kernel and all its processes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import dataclass

from tunnelbench.errors import UserError
from tunnelbench.lab import messages
from tunnelbench.lab.agent_program import agent_program
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.image import Image
from tunnelbench.lab.incoming import INCOMING_ONLY
from tunnelbench.lab.namespace import NamespaceNode
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program

AGENT_PATH = "/run/tunnelbench/tbnode"
MEMORY_MEGABYTES = 160
_BOOT_SECONDS = 30.0
_QUEUE_DEPTH = 128
_CONSOLE_LINES = 80
"""Enough for a panic with its traces."""


@dataclass(frozen=True)
class KernelInterface:
    """A network interface of the kernel: `transport` as User Mode Linux describes its other end."""

    name: str
    transport: str


class KernelNode:
    """A running kernel, the agent inside it, and its hull."""

    def __init__(self, node: Node, hull: NamespaceNode, kernel: Program) -> None:
        """Made by `start_kernel_node`."""
        self.node = node
        self.hull = hull
        self._kernel = kernel
        self._watch = asyncio.create_task(self._end_with_kernel())

    async def close(self) -> None:
        """Ends the kernel and its hull, and returns when both are gone."""
        self._watch.cancel()
        await self.node.close()
        await self.hull.close()

    def console(self) -> str:
        """The last lines of the kernel's console."""
        return self._kernel.log_tail(_CONSOLE_LINES)

    async def _end_with_kernel(self) -> None:
        """A kernel that panics closes no stream: its hull still holds the other end."""
        await self._kernel.ended()
        panic = next((line.strip() for line in self._kernel.lines if "Kernel panic" in line), None)
        await self.node.close(panic or "its kernel ended")


async def start_kernel_node(
    name: str,
    image: Image,
    hull: NamespaceNode,
    serial: tuple[socket.socket, socket.socket],
    interfaces: Sequence[KernelInterface],
    *,
    mtu: int,
    processors: Sequence[int],
    descriptors: Sequence[int],
    radios: int = 0,
) -> KernelNode:
    """Boots a kernel in `hull`.

    `serial` is a pair of connected sockets: ours, and the one that `hull` inherited. `descriptors` are those
    that the interfaces' transports name; `radios` is how many the kernel simulates. Raises UserError with the
    console's last lines when it does not boot.
    """
    ours, theirs = serial
    vectors = [
        f"vec{number}:{interface.transport},mac={_hardware_address(name, number)},mtu={mtu},"
        f"depth={_QUEUE_DEPTH},vec=1"
        for number, interface in enumerate(interfaces)
    ]
    library = _wide_registers()
    kernel = await hull.node.spawn(
        f"/{image.kernel.lstrip('/')}",
        f"mem={MEMORY_MEGABYTES}M",
        "rootfstype=hostfs",
        "rw",
        f"init={AGENT_PATH}",
        "con=null",
        "con0=null,fd:1",
        f"ssl0=fd:{theirs.fileno()}",
        "uml_dir=/run/uml",
        f"umid={name}",
        "quiet",
        "panic=-1",
        # No tunl0, gre0 and the like, which would come with a first tunnel and outlast it.
        "fb_tunnels=none",
        # The same for devices that a kernel without modules makes when it boots.
        *("dummy.numdummies=0", "ifb.numifbs=0", f"mac80211_hwsim.radios={radios}"),
        *vectors,
        "--",
        "guest",
        name,
        environment={"TMPDIR": "/dev/shm"} | ({"LD_PRELOAD": library.path} if library else {}),
        files=[INCOMING_ONLY, *([library] if library else [])],
        descriptors=[theirs.fileno(), *descriptors],
        processors=processors,
        output_limit=1 << 18,
    )
    node = Node(name)
    booted = KernelNode(node, hull, kernel)
    try:
        await node.open(ours, _BOOT_SECONDS)
        # Debian builds IPv6 as a module, and nothing asks for it before its settings are written.
        await node.run("modprobe", "-a", "-q", "ipv6", "af_packet", check=False)
    except NodeError as error:
        await booted.close()
        raise UserError(
            f"the kernel of {name} did not boot: {error}; its console's last lines:\n{kernel.log_tail()}"
        ) from error
    return booted


def _wide_registers() -> messages.NewFile | None:
    """Without this library, the kernels of images do not boot on processors with AMX.

    Only where it was built: on x86-64.
    """
    library = agent_program().with_name("libtunnelbench_wide_registers.so")
    if not library.exists():
        return None
    return messages.NewFile(f"/run/{library.name}", library.read_bytes(), 0o755)


def _hardware_address(name: str, interface: int) -> str:
    """A locally administered address that differs between the nodes of a lab."""
    digest = sum(ord(character) * 31**position for position, character in enumerate(name)) & 0xFFFF
    return f"02:00:00:{digest >> 8:02x}:{digest & 0xFF:02x}:{interface:02x}"
