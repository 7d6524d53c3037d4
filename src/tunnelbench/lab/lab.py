"""A lab: a topology made real on one machine, by namespaces and kernels, and taken down again whole."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from types import TracebackType

from tunnelbench.lab import messages
from tunnelbench.lab.agent_program import run_agent
from tunnelbench.lab.bridge import add_bridge, silence
from tunnelbench.lab.image import Image
from tunnelbench.lab.incoming import INCOMING_ONLY
from tunnelbench.lab.kernel import KernelInterface, KernelNode, start_kernel_node
from tunnelbench.lab.namespace import NamespaceNode, start_namespace_node
from tunnelbench.lab.node import Node
from tunnelbench.lab.shaping import Shaping, shape
from tunnelbench.lab.topology import Family, Link, LinkEnd, Site, Topology
from tunnelbench.lab.wifi import RADIOS, Wifi, join_by_wifi

_SOCKET_BUFFER = 4 << 20


class Runtime(StrEnum):
    """Where a node runs."""

    NAMESPACE = "namespace"
    KERNEL = "kernel"


@dataclass(frozen=True)
class LabPlan:
    """What to build."""

    topology: Topology
    images: Image | Mapping[str, Image]
    """What all nodes run, or what each of them does, but for a hop of Wi-Fi."""
    runtimes: Mapping[str, Runtime] = field(default_factory=dict[str, Runtime])
    """Each node's runtime; a node not named is a namespace."""
    mtu: int = 1500
    shaping: Shaping = field(default_factory=Shaping)
    """What the wire between the gateways does to packets."""
    host_shaping: Shaping = field(default_factory=Shaping)
    """What the links of the hosts, which are all others, do to packets."""
    wifi: Wifi | None = None
    """The hop of Wi-Fi, in a topology that has one."""

    def runtime(self, node: str) -> Runtime:
        """The runtime of a node; only kernels of their own simulate radios."""
        if node == self.topology.wifi:
            return Runtime.KERNEL
        return self.runtimes.get(node, Runtime.NAMESPACE)

    def image_of(self, node: str) -> Image:
        """What a node runs."""
        if self.wifi is not None and node == self.topology.wifi:
            return self.wifi.image
        return self.images if isinstance(self.images, Image) else self.images[node]

    def shaping_of(self, link: Link) -> Shaping:
        """What a link does to packets."""
        return self.shaping if link.wire else self.host_shaping


class Lab:
    """An open lab; use it as an asynchronous context manager."""

    def __init__(self, plan: LabPlan) -> None:
        """A lab that is to be built to `plan`."""
        self.plan = plan
        self.topology = plan.topology
        self.nodes: dict[str, Node] = {}
        self.wifi_read_back = ""
        """What both ends of its hop of Wi-Fi said that it is; empty without one."""
        self._outer: dict[str, NamespaceNode] = {}
        self._kernels: dict[str, KernelNode] = {}
        self._cleanup = AsyncExitStack()

    @property
    def sites(self) -> tuple[Site, Site]:
        """The two sides of the tunnel."""
        return self.topology.sites

    def accountant(self, node: str) -> Node:
        """The node whose process counters hold all that `node` costs: for a kernel, its hull."""
        return self._outer[node].node

    def process_id(self, node: str) -> int:
        """On this machine, of the agent that is process 1 of `node`, or of its hull."""
        return self._outer[node].process_id

    def console(self, node: str) -> str | None:
        """The console's last lines of a node that is a kernel."""
        kernel = self._kernels.get(node)
        return kernel.console() if kernel else None

    async def __aenter__(self) -> Lab:
        """Builds it; whatever fails, nothing is left. Raises UserError."""
        try:
            await self._build()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Takes it down."""
        await self.close()

    async def close(self) -> None:
        """Takes it down, and returns when all its processes are gone."""
        await asyncio.shield(self._cleanup.aclose())

    async def give_names(self, families: Iterable[Family]) -> None:
        """Lets every node know every other by name, under its addresses of these families."""
        lines = ["127.0.0.1 localhost", "::1 localhost"]
        for name, addresses in self.topology.names().items():
            lines += [f"{addresses.address(family)} {name}" for family in families]
        hosts = "".join(f"{line}\n" for line in lines).encode()
        await asyncio.gather(*(node.write_file("/etc/hosts", hosts) for node in self.nodes.values()))

    async def _build(self) -> None:
        wires = {
            link: _datagram_pair()
            for link in self.topology.links
            if all(self.plan.runtime(end.node) is Runtime.KERNEL for end in link.ends)
        }
        serials = {
            node: stream_pair() for node in self.topology.nodes if self.plan.runtime(node) is Runtime.KERNEL
        }
        inherited = {
            node: [theirs.fileno()]
            + [
                pair[side].fileno()
                for link, pair in wires.items()
                for side, end in enumerate(link.ends)
                if end.node == node
            ]
            for node, (_, theirs) in serials.items()
        }
        try:
            await self._start_outer_nodes(inherited)
            await self._wire()
            await asyncio.gather(
                *(self._boot(node, serials[node], wires, inherited[node]) for node in serials)
            )
        finally:
            for pair in wires.values():
                for end in pair:
                    end.close()
            for _, theirs in serials.values():
                theirs.close()
        for node in self.topology.nodes:
            self.nodes[node] = (self._kernels[node] if node in self._kernels else self._outer[node]).node
        await asyncio.gather(*(self._configure(name, node) for name, node in self.nodes.items()))
        await self._join_ports()
        await self._raise_wifi()
        await self.give_names(Family)
        await asyncio.gather(
            *(
                shape(self.nodes[end.node], end.interface, self.plan.shaping_of(link))
                for link in self.topology.links
                if self.plan.shaping_of(link).shapes
                for end in link.ends
            )
        )

    async def _start_outer_nodes(self, inherited: Mapping[str, list[int]]) -> None:
        first, *others = self.topology.nodes
        await self._start_outer_node(first, own_identities(), inherited)
        sibling = ["--user-namespace-of", str(self._outer[first].process_id)]
        identities = [] if os.geteuid() == 0 else sibling
        await asyncio.gather(*(self._start_outer_node(node, identities, inherited) for node in others))

    async def _start_outer_node(
        self, node: str, identities: list[str], inherited: Mapping[str, list[int]]
    ) -> None:
        outer = await start_namespace_node(
            node,
            self.plan.image_of(node).root,
            user_namespace=identities,
            descriptors=inherited.get(node, ()),
        )
        self._outer[node] = outer
        self._cleanup.push_async_callback(outer.close)
        await outer.node.configure(*_quiet_ipv6("all", "default"))

    async def _wire(self) -> None:
        """Makes the links that have at least one end in a namespace."""
        for link in self.topology.links:
            if all(self.plan.runtime(end.node) is Runtime.KERNEL for end in link.ends):
                continue
            ends = [f"{self._outer[end.node].process_id}:{self._outer_interface(end)}" for end in link.ends]
            enter = [] if os.geteuid() == 0 else ["--enter-user-namespace"]
            await run_agent("wire", *ends, *enter)
            await asyncio.gather(*(self._raise_link(end) for end in link.ends))

    async def _raise_link(self, end: LinkEnd) -> None:
        outer, interface = self._outer[end.node].node, self._outer_interface(end)
        quiet: list[messages.NetworkOperation] = []
        if self.plan.runtime(end.node) is Runtime.KERNEL:
            # This end belongs to the kernel; the hull's own network must not speak on it.
            quiet = [messages.SetSysctl(f"net/ipv6/conf/{interface}/disable_ipv6", "1")]
        await outer.configure(
            *quiet, messages.SetLink(interface, up=True, mtu=self.plan.mtu, disable_offloads=True)
        )

    def _outer_interface(self, end: LinkEnd) -> str:
        return f"{end.interface}-port" if self.plan.runtime(end.node) is Runtime.KERNEL else end.interface

    async def _boot(
        self,
        node: str,
        serial: tuple[socket.socket, socket.socket],
        wires: Mapping[Link, tuple[socket.socket, socket.socket]],
        descriptors: list[int],
    ) -> None:
        names: list[str] = []
        interfaces: list[KernelInterface] = []
        for link in self.topology.links:
            for side, end in enumerate(link.ends):
                if end.node != node:
                    continue
                transport = (
                    f"transport=fd,fd={wires[link][side].fileno()}"
                    if link in wires
                    else f"transport=raw,ifname={self._outer_interface(end)},bpffile={INCOMING_ONLY.path}"
                )
                interfaces.append(KernelInterface(end.interface, transport))
                names.append(end.interface)
        position = self.topology.nodes.index(node)
        kernel = await start_kernel_node(
            node,
            self.plan.image_of(node),
            self._outer[node],
            serial,
            interfaces,
            mtu=self.plan.mtu,
            processors=[position % (os.cpu_count() or 1)],
            descriptors=descriptors,
            radios=RADIOS if node == self.topology.wifi else 0,
        )
        self._kernels[node] = kernel
        self._cleanup.push_async_callback(kernel.close)
        await kernel.node.configure(
            *(messages.SetLink(f"vec{number}", new_name=name) for number, name in enumerate(names))
        )

    async def _configure(self, name: str, node: Node) -> None:
        interfaces = [end.interface for end in self.topology.addresses if end.node == name]
        operations: list[messages.NetworkOperation] = [
            *_quiet_ipv6("all", "default", *interfaces),
            messages.SetLink("lo", up=True),
        ]
        if name in self.topology.gateways:
            operations += [
                messages.SetSysctl("net/ipv4/ip_forward", "1"),
                messages.SetSysctl("net/ipv6/conf/all/forwarding", "1"),
            ]
        for end, addresses in self.topology.addresses.items():
            if end.node != name:
                continue
            if end.interface != "lo":
                operations.append(messages.SetLink(end.interface, up=True, mtu=self.plan.mtu))
                # Only now: User Mode Linux switches some of them on whenever a link is raised.
                operations.append(messages.SetLink(end.interface, disable_offloads=True))
            operations += [
                messages.AddAddress(end.interface, str(addresses.interface(family))) for family in Family
            ]
        for site in (*self.topology.clients, self.topology.server):
            if site.host == name and site.gateway_inside is not None:
                operations += [
                    messages.AddRoute(default, gateway=str(site.gateway_inside.address(family)))
                    for family, default in ((Family.IPV4, "0.0.0.0/0"), (Family.IPV6, "::/0"))
                ]
        await node.configure(*operations)

    async def _join_ports(self) -> None:
        """Makes the switch one: a bridge of all its links."""
        if self.topology.switch is None:
            return
        node = self.nodes[self.topology.switch]
        ports = [end.interface for link in self.topology.links for end in link.ends if end.node == node.name]
        await silence(node)
        await add_bridge(node, "bridge", ports, self.plan.mtu)

    async def _raise_wifi(self) -> None:
        if self.plan.wifi is None or self.topology.wifi is None:
            return
        self.wifi_read_back = await join_by_wifi(
            self.nodes[self.topology.wifi], self.plan.wifi.rate, self.plan.mtu
        )


def own_identities() -> list[str]:
    """How the agent is told to make a node's identities: root has them all, others need a user namespace."""
    return [] if os.geteuid() == 0 else ["--new-user-namespace"]


def _quiet_ipv6(*interfaces: str) -> list[messages.NetworkOperation]:
    """No duplicate address detection, which takes seconds, and no addresses but the lab's own."""
    return [
        messages.SetSysctl(f"net/ipv6/conf/{interface}/{setting}", "0")
        for interface in interfaces
        for setting in ("accept_dad", "accept_ra")
    ]


def _datagram_pair() -> tuple[socket.socket, socket.socket]:
    """A wire between two kernels; its buffers hold a full queue of frames."""
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for end in pair:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            end.setsockopt(socket.SOL_SOCKET, option, _SOCKET_BUFFER)
    return pair


def stream_pair() -> tuple[socket.socket, socket.socket]:
    """A kernel's serial line: our end, and the one that its hull inherits."""
    return socket.socketpair()
