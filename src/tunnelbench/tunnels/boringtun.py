"""WireGuard by BoringTun: Cloudflare's program in Rust, with as many threads as it starts by itself.

Debian has not got it; images built with `--with boringtun` have it. It does not pad packets to multiples of
16 bytes, as the protocol asks.
"""

from __future__ import annotations

import re
from contextlib import AsyncExitStack
from dataclasses import replace

from tunnelbench.lab.features import TUN
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.overhead import Layer
from tunnelbench.tunnels import wireguard_device
from tunnelbench.tunnels.base import Gateway, Needs, ReadBack, Variant
from tunnelbench.tunnels.daemons import place_files, printed, start_daemon
from tunnelbench.tunnels.wireguard_device import INTERFACE, WireguardTunnel, read_status


class Boringtun(WireguardTunnel):
    """A tun device on both gateways, joined by BoringTun."""

    name = "boringtun"
    title = "WireGuard (BoringTun)"

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def needs(self, variant: Variant) -> Needs:
        """BoringTun, the tool that configures it, and TUN devices."""
        return Needs(programs=frozenset({"boringtun-cli", "wg"}), features=frozenset({TUN}))

    async def create(self, end: Gateway, cleanup: AsyncExitStack) -> Program:
        """Starts BoringTun, which makes the device."""
        # The socket by which it is configured is here; it leaves it when it is killed.
        await place_files(end.node, "/run/wireguard", {}, cleanup)
        daemon = await start_daemon(
            *(end.node, cleanup, "boringtun-cli", "--foreground", "--disable-drop-privileges"),
            *("--verbosity", "debug", INTERFACE),
            environment={"NO_COLOR": "1"},
        )
        await daemon.line("BoringTun started successfully", wireguard_device.READY_SECONDS)
        return daemon

    async def read_status(self, node: Node, program: Program | None, peers: int) -> ReadBack:
        """Its log tells of sessions; to wg(8) it says how long ago handshakes were as if that were when."""
        assert program is not None
        shown = await node.run("wg", "show", INTERFACE)
        return read_status(shown.text, peers, sessions=_sessions(printed(program)))

    def layer(self) -> Layer:
        """That of the protocol without padding."""
        return replace(super().layer(), padding=None)


TUNNEL = Boringtun()


def _sessions(log: str) -> int:
    return len(re.findall(r"New session", log))
