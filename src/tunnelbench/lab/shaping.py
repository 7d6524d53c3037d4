"""What a link does to packets: rate, delay and loss, with the kernel's traffic control (tc(8))."""

from __future__ import annotations

from dataclasses import dataclass

from tunnelbench.errors import UserError
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import ProgramError

ETHERNET_FRAMING = 8 + 4 + 12
"""Bytes of a port's time that a frame takes beyond its own, which an interface doesn't count: preamble, frame
check sequence and gap (IEEE 802.3)."""


@dataclass(frozen=True)
class Shaping:
    """Each direction's rate in bit/s, delay in seconds, and loss as a ratio; None leaves it as it is."""

    rate: float | None = None
    framing: int = 0
    """Bytes that the rate counts for each frame beyond those of its own."""
    delay: float | None = None
    loss: float | None = None

    @property
    def shapes(self) -> bool:
        """Whether there is anything to do."""
        return self.rate is not None or self.needs_emulation

    @property
    def needs_emulation(self) -> bool:
        """Whether the kernel must have the network emulator (netem)."""
        return self.delay is not None or self.loss is not None


async def shape(node: Node, interface: str, shaping: Shaping) -> None:
    """Shapes what leaves `interface`; raises UserError where this node's kernel can't."""
    parent = ["root"]
    if shaping.rate is not None:
        # A burst of about 1.3 ms at the rate, and a queue of 50 ms, behave like an Ethernet port.
        burst = max(16_384, round(shaping.rate / 8 * 0.00131))
        await _queue(
            node, interface, parent, "1:", "tbf", "rate", f"{shaping.rate:.0f}bit",
            "burst", str(burst), "latency", "50ms", "overhead", str(shaping.framing),
        )  # fmt: skip
        parent = ["parent", "1:1"]
    if shaping.needs_emulation:
        delay = ["delay", f"{shaping.delay * 1e6:.0f}us"] if shaping.delay is not None else []
        loss = ["loss", f"{shaping.loss:.6%}"] if shaping.loss is not None else []
        await _queue(node, interface, parent, "2:", "netem", *delay, *loss, "limit", "100000")


async def _queue(node: Node, interface: str, parent: list[str], handle: str, *discipline: str) -> None:
    try:
        await node.run("tc", "qdisc", "add", "dev", interface, *parent, "handle", handle, *discipline)
    except ProgramError as error:
        raise UserError(
            f"{node.name} can't shape its link with {discipline[0]}: {error.completed.error_text.strip()}",
            advice="Run the gateways as kernels (--runtime kernel): their kernel has the network emulator.",
        ) from error
