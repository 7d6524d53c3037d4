"""Which images a treatment needs, and where its tunnel can run on them."""

from __future__ import annotations

from collections.abc import Mapping

from tunnelbench.lab.features import Needs
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Runtime
from tunnelbench.lab.runtimes import Placement, place
from tunnelbench.lab.topology import topology_of
from tunnelbench.study.treatment import Treatment


def at_tunnel_ends(treatment: Treatment, topology: str) -> tuple[str, ...]:
    """The names of the images on which a tunnel ends: each once, that of the server's end first."""
    network = topology_of(topology, treatment.clients)
    ends = (site.gateway for site in (network.server, *network.clients))
    systems = (treatment.host_os if end in network.hosts else treatment.gateway_os for end in ends)
    return tuple(dict.fromkeys(systems))


async def place_tunnels(
    wanted: Mapping[Treatment, Needs],
    topology: str,
    images: Mapping[str, Image],
    forced: Runtime | None = None,
) -> dict[Treatment, Placement]:
    """Decides where the ends of each tunnel run, which is the same for all of them.

    All images on which it ends must have what it needs. Raises UserError where this machine can't make nodes.
    """
    found: dict[Treatment, list[Placement]] = {treatment: [] for treatment in wanted}
    ends = {treatment: at_tunnel_ends(treatment, topology) for treatment in wanted}
    for name in dict.fromkeys(image for treatment in wanted for image in ends[treatment]):
        needs = {treatment: needs for treatment, needs in wanted.items() if name in ends[treatment]}
        for treatment, placement in (await place(images[name], needs, forced)).items():
            found[treatment].append(placement)
    chosen = {
        treatment: next((one for one in placements if one.runtime is None), placements[0])
        for treatment, placements in found.items()
    }
    # One end runs here and another only as a kernel: then all are kernels.
    mixed = {
        treatment: wanted[treatment]
        for treatment, placements in found.items()
        if chosen[treatment].runtime is not None and len({one.runtime for one in placements}) > 1
    }
    return chosen | (await place_tunnels(mixed, topology, images, Runtime.KERNEL) if mixed else {})
