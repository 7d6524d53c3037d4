"""What SSH's ways of forwarding TCP connections have in common.

TCP ends on both gateways: a client connects to its own one, whose `ssh` has the other gateway's server
connect to the host. What crosses the wire are the bytes of a stream, not packets.
"""

from __future__ import annotations

from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Inner
from tunnelbench.tunnels.base import Needs, Place, Tunnel, Variant, options, suites
from tunnelbench.tunnels.openssh import packet_layers, ssh_needs
from tunnelbench.tunnels.ssh_suites import COMPRESSION, MAC_ORDER, all_suites, impossible


class SshStream(Tunnel):
    """TCP connections that OpenSSH carries; what is left to say is where it listens."""

    suites = suites(*all_suites())
    options = options(COMPRESSION, MAC_ORDER)
    carries = frozenset(("tcp", family) for family in Family)
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """A MAC's order without a MAC."""
        return impossible(variant)

    def needs(self, variant: Variant) -> Needs:
        """A client and a server with the suite."""
        return ssh_needs(variant)

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """What a gateway reads at once is the data of one message of a channel, in a TCP stream."""
        return Encapsulation(
            layers=packet_layers(variant),
            inner=Inner.STREAM,
            compresses=variant[COMPRESSION.name] != "none",
        )
