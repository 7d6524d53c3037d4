"""GRE: generic routing encapsulation (RFC 2784) in IPv4, or in IPv6 (RFC 7676), without encryption."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Layer
from tunnelbench.overhead import layers as formats
from tunnelbench.tunnels.kernel_link import KernelLink


class Gre(KernelLink):
    """A GRE link of the kernel."""

    name = "gre"
    title = "GRE"
    kinds: ClassVar[Mapping[Family, str]] = {Family.IPV4: "gre", Family.IPV6: "ip6gre"}
    outer_families = frozenset(kinds)
    protocols = ("gre",)

    def headers(self) -> tuple[Layer, ...]:
        """GRE's header, without key, sequence number and checksum."""
        return (formats.gre(),)


TUNNEL = Gre()
