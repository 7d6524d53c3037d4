"""The limit of a radio channel: what is sent in either direction takes turns on it.

Frames that arrive on the port of the host or on that of its gateway wait here before the radio gets them,
those of each port in a queue of their own. The queues share the channel equally, as stations do that contend
for it with equal rights (EDCA, IEEE 802.11-2012, 9.19.2).
"""

from __future__ import annotations

from tunnelbench.lab.node import Node
from tunnelbench.lab.topology import WIFI_PORTS

FRAMING = 26 + 16 + 8 + 4 + 4 - 14
"""Bytes that a frame takes on the channel beyond its own: 802.11's header, CCMP, LLC and SNAP, frame check
sequence and A-MPDU delimiter, in place of Ethernet's header (IEEE 802.11-2012, 8.2.3, 8.6.1 and 11.4.3.2)."""

_SHAPER = "airtime"
_BURST_SECONDS = 0.00131
_LEAST_BURST = 16_384
_QUEUE_SECONDS = 0.05
_TURN_BYTES = 3000


async def limit_airtime(node: Node, rate: float) -> None:
    """Lets what arrives on both ports of a hop pass at no more than `rate` bit/s of 802.11's frames.

    Raises ProgramError where the node's kernel can't.
    """
    await node.run("ip", "link", "add", _SHAPER, "type", "ifb")
    await node.run("ip", "link", "set", _SHAPER, "up")
    await _control(node, "qdisc", _SHAPER, "root", "handle", "1:", "htb")
    await _control(node, "class", _SHAPER, "parent", "1:", "classid", "1:1", *_share(rate, rate))
    for number, port in enumerate(WIFI_PORTS, 2):
        share, equal = f"1:{number}", _share(rate / len(WIFI_PORTS), rate)
        await _control(node, "class", _SHAPER, "parent", "1:1", "classid", share, *equal)
        queue = ("handle", f"{number}:", "bfifo", "limit", f"{rate / 8 * _QUEUE_SECONDS:.0f}")
        await _control(node, "qdisc", _SHAPER, "parent", share, *queue)
        await _lead_to(share, node, port)


async def _lead_to(share: str, node: Node, port: str) -> None:
    """Has what arrives on a port wait in its share."""
    wait = (
        *("action", "skbedit", "priority", share, "pipe"),
        *("action", "mirred", "egress", "redirect", "dev", _SHAPER),
    )
    await _control(node, "qdisc", port, "handle", "ffff:", "ingress")
    await _control(node, "filter", port, "parent", "ffff:", "protocol", "all", "prio", "1", "matchall", *wait)


def _share(rate: float, most: float) -> tuple[str, ...]:
    """A class's part of the channel, and what it may have while nobody else wants it, in bit/s."""
    burst = f"{max(_LEAST_BURST, most / 8 * _BURST_SECONDS):.0f}"
    rates = ("rate", f"{rate:.0f}bit", "ceil", f"{most:.0f}bit", "burst", burst, "cburst", burst)
    return ("htb", *rates, "overhead", str(FRAMING), "quantum", str(_TURN_BYTES))


async def _control(node: Node, kind: str, interface: str, *words: str) -> None:
    await node.run("tc", kind, "add", "dev", interface, *words)
