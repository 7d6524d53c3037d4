"""WireGuard by wireguard-go: a program encrypts the packets of a tun device, several at a time."""

from __future__ import annotations

from contextlib import AsyncExitStack

from tunnelbench.lab.features import TUN
from tunnelbench.lab.program import Program
from tunnelbench.tunnels import wireguard_device
from tunnelbench.tunnels.base import Gateway, Needs, Variant
from tunnelbench.tunnels.daemons import place_files, start_daemon
from tunnelbench.tunnels.wireguard_device import INTERFACE, WireguardTunnel

# A log of what happens, though not to each packet; without the notice that kernels can do WireGuard too.
_ENVIRONMENT = {"LOG_LEVEL": "verbose", "WG_PROCESS_FOREGROUND": "1"}


class WireguardGo(WireguardTunnel):
    """A tun device on both gateways, joined by wireguard-go."""

    name = "wireguard-go"
    title = "WireGuard (wireguard-go)"

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def needs(self, variant: Variant) -> Needs:
        """wireguard-go, the tool that configures it, and TUN devices."""
        return Needs(programs=frozenset({"wireguard-go", "wg"}), features=frozenset({TUN}))

    async def create(self, end: Gateway, cleanup: AsyncExitStack) -> Program:
        """Starts wireguard-go, which makes the device."""
        # The socket by which it is configured is here; it leaves it when it is killed.
        await place_files(end.node, "/run/wireguard", {}, cleanup)
        daemon = await start_daemon(
            end.node, cleanup, "wireguard-go", "-f", INTERFACE, environment=_ENVIRONMENT
        )
        await daemon.line("UAPI listener started", wireguard_device.READY_SECONDS)
        return daemon


TUNNEL = WireguardGo()
