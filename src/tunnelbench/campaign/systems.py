"""Which image each node of a treatment runs, and where its tunnel can run on them."""

from __future__ import annotations

from collections.abc import Mapping

from tunnelbench.lab.features import Needs
from tunnelbench.lab.image import Image
from tunnelbench.lab.lab import Runtime
from tunnelbench.lab.runtimes import Placement, place
from tunnelbench.lab.topology import Topology, topology_of
from tunnelbench.study.systems import read_systems
from tunnelbench.study.treatment import Treatment


def images_by_node(
    topology: Topology, gateway_os: str, host_os: str, images: Mapping[str, Image]
) -> dict[str, Image]:
    """What each node runs, but for a hop of Wi-Fi, which has an image of its own; `images` are by name."""
    names = names_by_node(topology, gateway_os, host_os)
    return {node: images[name] for node, name in names.items() if node != topology.wifi}


def names_by_node(topology: Topology, gateway_os: str, host_os: str) -> dict[str, str]:
    """The name of the image that each node runs; a switch runs what the gateway behind it runs."""
    gateways, hosts = read_systems(gateway_os), read_systems(host_os)
    first_side = {node for site in topology.clients for node in (site.host, site.gateway)}
    by_kind = {node: hosts if node in topology.hosts else gateways for node in topology.nodes}
    return {
        node: systems.first if node in first_side else systems.second for node, systems in by_kind.items()
    }


def at_tunnel_ends(treatment: Treatment, topology: str) -> tuple[str, ...]:
    """The names of the images on which a tunnel ends: each once, that of the server's end first."""
    network = topology_of(topology, treatment.clients)
    names = names_by_node(network, treatment.gateway_os, treatment.host_os)
    return tuple(dict.fromkeys(names[site.gateway] for site in (network.server, *network.clients)))


async def place_tunnels(
    wanted: Mapping[Treatment, Needs],
    topology: str,
    images: Mapping[str, Image],
    forced: Runtime | None = None,
) -> dict[Treatment, Placement]:
    """Decides where the ends of each tunnel run, which is the same for all of them.

    All images on which it ends must have what it needs. Raises UserError where this machine can't make nodes.
    """
    found: dict[Treatment, dict[str, Placement]] = {treatment: {} for treatment in wanted}
    ends = {treatment: at_tunnel_ends(treatment, topology) for treatment in wanted}
    for name in dict.fromkeys(image for treatment in wanted for image in ends[treatment]):
        needs = {treatment: needs for treatment, needs in wanted.items() if name in ends[treatment]}
        for treatment, placement in (await place(images[name], needs, forced)).items():
            found[treatment][name] = placement
    chosen = {treatment: _joint(by_image) for treatment, by_image in found.items()}
    # One end runs here and another only as a kernel: then all are kernels.
    mixed = {
        treatment: wanted[treatment]
        for treatment, by_image in found.items()
        if chosen[treatment].runtime is not None and len({one.runtime for one in by_image.values()}) > 1
    }
    return chosen | (await place_tunnels(mixed, topology, images, Runtime.KERNEL) if mixed else {})


def _joint(by_image: Mapping[str, Placement]) -> Placement:
    """Nowhere where one image won't do, else where the first can; with each reason that decides it."""
    lacking = {name: one for name, one in by_image.items() if one.runtime is None}
    decisive = lacking or by_image
    (runtime, reason), *others = ((one.runtime, one.reason) for one in decisive.values())
    if all(other == reason for _, other in others):
        return Placement(runtime, reason)
    return Placement(runtime, "; ".join(f"{name}: {one.reason}" for name, one in decisive.items()))
