"""sit, or 6in4: IPv6 within IPv4 (RFC 4213), without encryption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.kernel_link import KernelLink, over


class Sit(KernelLink):
    """A sit link of the kernel."""

    name = "sit"
    title = "6in4"
    kinds: ClassVar[Mapping[Family, str]] = {Family.IPV4: "sit"}
    protocols = ("ip6",)
    carries = over(Family.IPV6)


TUNNEL = Sit()
