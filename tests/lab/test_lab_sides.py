"""Sides that run different images, in real labs."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from tunnelbench.campaign.campaign import Wish, start
from tunnelbench.campaign.observer import Silent
from tunnelbench.campaign.systems import images_by_node, place_tunnels
from tunnelbench.errors import UserError
from tunnelbench.lab.features import Feature, Needs
from tunnelbench.lab.image import Image, find
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.topology import TOPOLOGIES
from tunnelbench.store.read import CampaignData
from tunnelbench.study.treatment import Treatment

pytestmark = pytest.mark.lab

SITE_TO_SITE = TOPOLOGIES["site-to-site"]
# User Mode Linux alone has a serial line of this kind.
IN_KERNELS = Feature("serial lines", ("test", "-c", "/dev/ttyS0"))

STUDY = """
[study]
id = "test"
title = "Test"
question = "Do releases get on with each other?"
runtime = "{runtime}"

[factors]
tunnel = ["{tunnel}"]
gateway_os = ["{gateway_os}"]
host_os = ["bookworm"]

[method]
rounds = 1
trial = "1.2 s"
warm_up = "0.2 s"
cool_down = "0.1 s"
"""


def images_of(*names: str) -> dict[str, Image]:
    """The images by name; a test of one that isn't built is skipped."""
    try:
        return {name: find(name) for name in names}
    except UserError as error:
        pytest.skip(error.message)


def gateways_on(gateway_os: str) -> Treatment:
    return Treatment(vpn="open", suite="none", gateway_os=gateway_os, host_os="bookworm", mtu=1500)


async def test_each_side_runs_its_own_programs_and_kernel() -> None:
    images = images_of("bookworm", "trixie")
    by_node = images_by_node(SITE_TO_SITE, "bookworm+trixie", "trixie+bookworm", images)
    kernels = dict.fromkeys(SITE_TO_SITE.gateways, Runtime.KERNEL)
    async with Lab(LabPlan(SITE_TO_SITE, by_node, kernels)) as lab:
        for node, name in (
            ("host1", "trixie"),
            ("gw1", "bookworm"),
            ("gw2", "trixie"),
            ("host2", "bookworm"),
        ):
            release = (await lab.nodes[node].read_file("/etc/os-release")).decode()
            assert f"VERSION_CODENAME={name}\n" in release
        for gateway, name in (("gw1", "bookworm"), ("gw2", "trixie")):
            assert (await lab.nodes[gateway].identify()).kernel == images[name].kernel_version


async def test_a_tunnel_needs_what_it_needs_on_both_sides() -> None:
    images = images_of("bullseye", "bookworm")
    treatments = [gateways_on("bookworm"), gateways_on("bullseye+bookworm"), gateways_on("bookworm+bullseye")]
    # Debian has it from release 12 on.
    needs = Needs(frozenset({"wireguard-go"}), frozenset())
    placed = await place_tunnels(dict.fromkeys(treatments, needs), "site-to-site", images)
    assert placed[treatments[0]].runtime is Runtime.NAMESPACE
    for treatment in treatments[1:]:
        assert placed[treatment].runtime is None
        assert placed[treatment].reason.startswith("the image bullseye lacks wireguard-go")


async def test_both_kernels_are_asked_for_what_this_one_lacks() -> None:
    images = images_of("bookworm", "trixie")
    treatment = gateways_on("bookworm+trixie")
    needs = Needs(frozenset(), frozenset({IN_KERNELS}))
    placement = (await place_tunnels({treatment: needs}, "site-to-site", images))[treatment]
    assert placement.runtime is Runtime.KERNEL
    for name, image in images.items():
        assert f"{name}: " in placement.reason
        assert f"the image's kernel ({image.kernel_version}) has them" in placement.reason


@pytest.mark.parametrize(
    ("tunnel", "gateway_os", "runtime"),
    [
        ("ipsec-manual/aes128-gcm", "bookworm+trixie", "kernel"),
        ("openvpn/aes-256-gcm", "bullseye+trixie", "namespace"),
    ],
)
async def test_releases_meet_are_proven_and_measured(
    tunnel: str, gateway_os: str, runtime: str, tmp_path: Path
) -> None:
    names = {*gateway_os.split("+"), "bookworm"}
    images_of(*names)
    study = STUDY.format(tunnel=tunnel, gateway_os=gateway_os, runtime=runtime)
    await start(study, "test.toml", tmp_path / "out", Wish(), Silent())
    with CampaignData(tmp_path / "out") as data:
        instances, trials = data.instances(), data.trials()
        (cipher,), versions = data.cryptography(), data.campaign().versions
    assert set(instances["vpn"]) == {"open", tunnel.partition("/")[0]}
    assert set(instances["status"]) == {"proven"}, instances["reason"].to_list()
    assert set(instances["gateway_os"]) == {gateway_os}
    assert set(instances["runtime"]) == {runtime}
    assert set(versions.programs) == names
    throughput = trials.filter(pl.col("metric") == "throughput")
    assert throughput.filter(pl.col("value") > 0).height == 2
    assert cipher.implementation.rpartition(" on ")[2] in gateway_os.split("+")
    assert cipher.ns_per_byte is not None, cipher.reason
