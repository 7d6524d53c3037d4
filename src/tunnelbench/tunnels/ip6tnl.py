"""ip6tnl: IPv4 and IPv6 within IPv6 (RFC 2473), without encryption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.kernel_link import KernelLink


class Ip6Tnl(KernelLink):
    """An ip6tnl link of the kernel for both IP versions."""

    name = "ip6tnl"
    title = "IP in IPv6"
    kinds: ClassVar[Mapping[Family, str]] = {Family.IPV6: "ip6tnl"}
    outer_families = frozenset(kinds)
    arguments = ("mode", "any")
    protocols = ("ipip", "ip6")


TUNNEL = Ip6Tnl()
