"""What tools that don't say when they listen, or that need more ports than one, ask of a node."""

from __future__ import annotations

from asyncio import sleep

from tunnelbench.load.base import LoadError, TrafficNode, Transport, Workload

_LOOK_S = 0.05


async def await_listener(node: TrafficNode, transport: Transport, port: int, seconds: float) -> None:
    """Waits until something listens at the port; raises LoadError where nothing does in time."""
    for _ in range(round(seconds / _LOOK_S)):
        if await _listens(node, transport, port):
            return
        await sleep(_LOOK_S)
    raise LoadError(f"nothing listened at {transport.upper()} port {port} within {seconds:g} s")


def require_all_ports(tool: str, workload: Workload) -> None:
    """Raises LoadError where single ports are forwarded, for a tool that uses several."""
    if workload.connect.address != workload.server.address:
        raise LoadError(
            f"{tool} controls its trials on a port of their own, and this VPN forwards the single port "
            f"{workload.connect.port}",
            advice="Use the load engine, iperf or iperf3 for VPNs that forward single ports.",
        )


async def _listens(node: TrafficNode, transport: Transport, port: int) -> bool:
    sockets = await node.run("ss", "-lnH", f"--{transport}", f"sport = :{port}", timeout=5.0)
    return bool(sockets.stdout.strip())
