"""PPP for remote access in real labs: the VPN gives each client its inside addresses of both families."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from itertools import product

import pytest
from tunnel_labs import lab_for

from tunnelbench.lab.image import DEFAULT_IMAGE, list_images
from tunnelbench.lab.topology import Family, remote_access
from tunnelbench.tunnels import all_tunnels
from tunnelbench.tunnels.base import bring_up

pytestmark = pytest.mark.lab

WITH_SSTP = next((image.name for image in list_images() if "sstp-server" in image.extras), DEFAULT_IMAGE)


@pytest.mark.parametrize(
    ("vpn", "suite", "levels", "image"),
    [
        ("l2tp", "mppe128", {"data-plane": "user-space"}, DEFAULT_IMAGE),
        ("l2tp-over-ipsec", "aes128-sha1", {"authentication": "certificate"}, DEFAULT_IMAGE),
        ("sstp", "aes256-sha384", {}, WITH_SSTP),
    ],
)
async def test_clients_get_the_addresses_of_their_sites(
    vpn: str, suite: str, levels: Mapping[str, str], image: str
) -> None:
    tunnel, topology = all_tunnels()[vpn], remote_access(2)
    variant = tunnel.variant(suite, levels)
    async with lab_for(tunnel, variant, topology, image) as lab, AsyncExitStack() as cleanup:
        established = await bring_up(lab, tunnel, variant, cleanup)
        if established.rekey is not None:
            await established.rekey()
        for client, family in product(topology.clients, Family):
            own, host = (str(site.inside.address(family)) for site in (client, topology.server))
            route = (await lab.nodes[client.host].run("ip", "route", "get", host)).text
            assert " dev ppp0 " in route
            assert f" src {own} " in route
            await lab.nodes[topology.server.host].run("ping", "-c", "1", "-W", "30", own)
        read_back = await established.read_back()
        assert read_back.suite == suite
        assert established.facts.items() <= read_back.facts.items()
