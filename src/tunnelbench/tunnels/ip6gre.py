"""ip6gre, as ip-link(8) calls GRE in IPv6 (RFC 7676): what `gre` is with IPv6 between the gateways."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.gre import Gre


class Ip6Gre(Gre):
    """A GRE link of the kernel that is always over IPv6."""

    name = "ip6gre"
    title = "GRE in IPv6"
    kinds: ClassVar[Mapping[Family, str]] = {Family.IPV6: "ip6gre"}
    outer_families = frozenset(kinds)


TUNNEL = Ip6Gre()
