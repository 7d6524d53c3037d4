"""The process that `tunnelbench lab up` leaves behind: brings a tunnel up in a lab, and holds it."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager

import msgspec

from tunnelbench.campaign.standing import NotStandingError, Standing
from tunnelbench.campaign.systems import images_by_node, place_tunnels
from tunnelbench.errors import UserError
from tunnelbench.lab import holder_messages as messages
from tunnelbench.lab import image as images
from tunnelbench.lab.holder import HeldLab, Report, hold
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.topology import Family, topology_of
from tunnelbench.study.treatment import Treatment
from tunnelbench.tunnels.base import Established
from tunnelbench.tunnels.path import SERVICE_PORT, target
from tunnelbench.tunnels.treatments import tunnel_of, variant_of

_SERVER_SECONDS = 10.0


class Wish(msgspec.Struct, frozen=True):
    """What lab is wanted; `runtime` is None for `auto`."""

    name: str
    levels: dict[str, str | int]
    """Those of the treatment."""
    topology: str
    runtime: Runtime | None

    @property
    def treatment(self) -> Treatment:
        """What is to be brought up."""
        return Treatment.model_validate(self.levels)

    @property
    def tunnel(self) -> str:
        """The VPN, its suite and what is unusual about it."""
        return self.treatment.tunnel


@asynccontextmanager
async def open_lab(wish: Wish, report: Report) -> AsyncGenerator[HeldLab]:
    """The lab that is wished for, with its tunnel up and looked at, and an iperf3 server on the last host."""
    tunnel, variant = tunnel_of(wish.treatment), variant_of(wish.treatment)
    treatment = wish.treatment
    found = {name: images.find(name) for name in treatment.images}
    topology = topology_of(wish.topology, wish.treatment.clients)
    report("asking where the gateways can run")
    needs = {treatment: tunnel.needs(variant)}
    placement = (await place_tunnels(needs, wish.topology, found, wish.runtime))[treatment]
    if placement.runtime is None:
        raise UserError(
            f"{wish.tunnel} can't run: {placement.reason}", advice="See what can: tunnelbench doctor"
        )
    report("starting the nodes")
    runtimes = dict.fromkeys(topology.gateways, placement.runtime)
    by_node = images_by_node(topology, treatment.gateway_os, treatment.host_os, found)
    async with Lab(LabPlan(topology, by_node, runtimes, treatment.mtu)) as lab:
        report(f"bringing {tunnel.title} up")
        _, right = lab.sites
        # Nothing of the tunnel outlives the nodes, so it needs no end of its own.
        standing = Standing(lab, treatment, AsyncExitStack())
        established = await standing.bring_up()
        # Programs try the first address of a name, and many only that.
        carried = tunnel.carried(variant)
        await lab.give_names([family for family in Family if any(family in traffic for traffic in carried)])
        report("looking at the wire")
        proof = await _prove(standing, established)
        server = await lab.nodes[right.host].spawn("iperf3", "--server", "--forceflush")
        await server.line("Server listening", _SERVER_SECONDS)

        def trouble() -> str | None:
            gone = [name for name, node in lab.nodes.items() if not node.alive]
            if gone:
                return f"{', '.join(gone)}: gone"
            dead = established.dead()
            return f"{dead.arguments[0]} ended with {dead.status}" if dead else None

        known = topology.names()
        nodes = [
            messages.Node(
                name=name,
                runtime=lab.plan.runtime(name),
                kernel=(await lab.nodes[name].identify()).kernel,
                addresses=[str(known[name].address(family)) for family in Family if name in known],
            )
            for name in topology.nodes
        ]
        yield HeldLab(
            lab=lab,
            description=messages.Description(
                name=wish.name,
                process_id=os.getpid(),
                tunnel=wish.tunnel,
                topology=wish.topology,
                systems=treatment.systems,
                mtu=treatment.mtu,
                runtime=placement.runtime,
                reason=placement.reason,
                proof=proof,
                nodes=nodes,
                hint=_hint(established, lab),
            ),
            trouble=trouble,
        )


async def _prove(standing: Standing, established: Established) -> str:
    try:
        evidence, _ = await standing.prove(established)
    except NotStandingError as error:
        return f"{error.status}: {error}"
    seen = evidence.marker_forward or evidence.marker_reverse
    return (
        f"proven: {', '.join(evidence.packets)} on the wire, the probe's marker "
        f"{'readable' if seen else 'not readable'}, suite {evidence.suite_read_back}"
    )


def _hint(established: Established, lab: Lab) -> str | None:
    """How to reach the server through a VPN that is a proxy or forwards single ports."""
    if established.proxies:
        proxy = established.proxies[Family.IPV4]
        return f"what is to go through asks the SOCKS 5 proxy at {proxy.address} port {proxy.port}"
    if not established.forwards:
        return None
    client, server = lab.sites
    listener = target(established, server, Family.IPV4)
    return (
        f"single ports are forwarded; reach an iperf3 server's from {client.host} at "
        f"{listener.address} port {listener.port} instead of {server.host} port {SERVICE_PORT}"
    )


def main() -> None:
    """Holds the lab that standard input describes."""
    wish = msgspec.json.decode(sys.stdin.buffer.read(), type=Wish)
    hold(wish.name, lambda report: open_lab(wish, report))


if __name__ == "__main__":
    main()
