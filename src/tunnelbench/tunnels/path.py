"""Where a load connects for its traffic to go through a tunnel."""

from __future__ import annotations

from tunnelbench.lab.topology import Family, Site
from tunnelbench.tunnels.base import Established, Target

SERVICE_PORT = 5201
"""The port at which every load listens, with several clients the first of them."""
BACKGROUND_PORT = 5301
"""The same for bulk streams beside measured traffic. VPNs that forward single ports forward these two."""


def target(established: Established, server: Site, family: Family, port: int = SERVICE_PORT) -> Target:
    """The address and port that lead to a port of the server: its own, or those that are forwarded to it."""
    own = Target(server.inside.address(family), port, established.proxies.get(family))
    return established.forwards.get((family, port), own)
