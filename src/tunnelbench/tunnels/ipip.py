"""IPIP: IPv4 within IPv4 (RFC 2003), without encryption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.kernel_link import KernelLink, over


class Ipip(KernelLink):
    """An IPIP link of the kernel."""

    name = "ipip"
    title = "IPIP"
    kinds: ClassVar[Mapping[Family, str]] = {Family.IPV4: "ipip"}
    protocols = ("ipip",)
    carries = over(Family.IPV4)


TUNNEL = Ipip()
