"""VPNs of the literature that nobody can run any more, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Unavailable:
    """A VPN that can't be had."""

    title: str
    reason: str


UNAVAILABLE: Mapping[str, Unavailable] = {
    "l2f": Unavailable(
        "L2F, Layer Two Forwarding",
        "no implementation for Linux survives; RFC 2341 is historic since L2TP (RFC 2661), which is `l2tp` "
        "here",
    ),
}
