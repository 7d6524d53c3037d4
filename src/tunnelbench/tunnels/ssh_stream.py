"""What SSH's forwarding of TCP connections has in common: what it carries, and how."""

from __future__ import annotations

from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Inner
from tunnelbench.tunnels.base import Traffic, Variant
from tunnelbench.tunnels.openssh import packet_layers
from tunnelbench.tunnels.ssh_suites import COMPRESSION

TCP_ALONE: frozenset[Traffic] = frozenset(("tcp", family) for family in Family)


def byte_stream(variant: Variant) -> Encapsulation:
    """What a gateway reads at once is the data of one message of a channel, in a TCP stream."""
    return Encapsulation(
        layers=packet_layers(variant),
        inner=Inner.STREAM,
        compresses=variant[COMPRESSION.name] != "none",
    )
