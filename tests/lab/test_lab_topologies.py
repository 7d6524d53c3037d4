"""Whole labs: every kind of node and link carries both families, and nothing outlives a lab, whoever dies."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import AsyncExitStack

import pytest
from lab_processes import descendants, survivors

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.image import find
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.shaping import ETHERNET_FRAMING, Shaping
from tunnelbench.lab.topology import TOPOLOGIES, Family, topology_of
from tunnelbench.tunnels.base import bring_up, gateways
from tunnelbench.tunnels.plain import TUNNEL as PLAIN_IP
from tunnelbench.witness.witness import examine

pytestmark = pytest.mark.lab

HANGS_SECONDS = 60.0
GATEWAYS = ("gw1", "gw2")


def lab_of(topology: str, *kernels: str, mtu: int = 1500, shaping: Shaping | None = None) -> Lab:
    runtimes = dict.fromkeys(kernels, Runtime.KERNEL)
    return Lab(LabPlan(TOPOLOGIES[topology], find(), runtimes, mtu, shaping or Shaping()))


async def route(lab: Lab) -> None:
    """Plain IP, so that the sites reach each other."""
    await PLAIN_IP.up(*gateways(lab), PLAIN_IP.variant("none"), AsyncExitStack())


async def ping(lab: Lab, family: Family, *options: str) -> str:
    """From the first host to the last, by name, until five packets came back; else raises ProgramError."""
    version = "-4" if family is Family.IPV4 else "-6"
    command = ("ping", version, "-c", "5", "-i", "0.01", "-w", "30", *options, "host2")
    return (await lab.nodes["host1"].run(*command, timeout=HANGS_SECONDS)).text


@pytest.mark.parametrize(
    ("topology", "kernels"),
    [
        ("site-to-site", ()),
        ("site-to-site", ("gw1",)),
        ("site-to-site", GATEWAYS),
        ("site-to-site", ("host1", *GATEWAYS, "host2")),
        ("host-to-host", ()),
        ("host-to-host", ("host1", "host2")),
    ],
)
async def test_both_families_cross_by_name(topology: str, kernels: tuple[str, ...]) -> None:
    before = set(descendants(os.getpid()))
    async with lab_of(topology, *kernels) as lab:
        processes = set(descendants(os.getpid())) - before
        await route(lab)
        for family in Family:
            await ping(lab, family)
        for name, node in lab.nodes.items():
            version = (await node.identify()).kernel
            assert (version == find().kernel_version) == (name in kernels)
    assert survivors(processes) == []


async def test_clients_of_remote_access_each_reach_the_host() -> None:
    plan = LabPlan(topology_of("remote-access", 3), find(), {"client2": Runtime.KERNEL})
    async with Lab(plan) as lab, AsyncExitStack() as cleanup:
        established = await bring_up(lab, PLAIN_IP, PLAIN_IP.variant("none"), cleanup)
        verdict = await examine(lab, established, PLAIN_IP.suites["none"], PLAIN_IP.carries)
        assert verdict.proven, verdict.refusal
        for client in ("client1", "client2", "client3"):
            for version in ("-4", "-6"):
                await lab.nodes[client].run("ping", version, "-c", "1", "-w", "30", "host")
                await lab.nodes["host"].run("ping", version, "-c", "1", "-w", "30", client)


async def test_two_labs_at_once_do_not_meet() -> None:
    async with lab_of("site-to-site") as one, lab_of("site-to-site", *GATEWAYS) as other:
        await asyncio.gather(route(one), route(other))
        await asyncio.gather(ping(one, Family.IPV4), ping(other, Family.IPV6))
        await one.nodes["gw1"].run("ip", "link", "set", "wan", "down")
        with pytest.raises(NodeError, match="100% packet loss"):
            await ping(one, Family.IPV4, "-w", "1")
        await ping(other, Family.IPV4)


async def test_wires_have_the_rate_delay_and_mtu_that_were_asked_for() -> None:
    shaping = Shaping(rate=50e6, delay=0.02)
    async with lab_of("site-to-site", *GATEWAYS, mtu=1400, shaping=shaping) as lab:
        await route(lab)
        fastest = re.search(r"= ([\d.]+)/", await ping(lab, Family.IPV4))
        assert fastest is not None
        assert float(fastest[1]) >= 40.0
        for gateway in GATEWAYS:
            queues = (await lab.nodes[gateway].run("tc", "qdisc", "show", "dev", "wan")).text
            assert "tbf" in queues
            assert "rate 50Mbit" in queues
        assert await lab.nodes["host1"].read_file("/sys/class/net/eth0/mtu") == b"1400\n"
        with pytest.raises(NodeError, match="message too long"):
            await ping(lab, Family.IPV4, "-M", "do", "-s", "1373")
        await ping(lab, Family.IPV4, "-M", "do", "-s", "1372")


async def test_links_of_hosts_have_the_rate_of_their_ethernet() -> None:
    hosts = Shaping(rate=100e6, framing=ETHERNET_FRAMING)
    plan = LabPlan(TOPOLOGIES["site-to-site"], find(), {"gw2": Runtime.KERNEL}, host_shaping=hosts)
    async with Lab(plan) as lab:
        for node, interface in (("host1", "eth0"), ("gw1", "lan"), ("gw2", "lan"), ("host2", "eth0")):
            queues = (await lab.nodes[node].run("tc", "qdisc", "show", "dev", interface)).text
            assert "tbf" in queues
            assert "rate 100Mbit" in queues
            assert "overhead 24" in queues
        for gateway in GATEWAYS:
            assert "tbf" not in (await lab.nodes[gateway].run("tc", "qdisc", "show", "dev", "wan")).text


async def test_a_wire_that_loses_everything_does_so() -> None:
    async with lab_of("host-to-host", "host1", "host2", shaping=Shaping(loss=1.0)) as lab:
        await route(lab)
        with pytest.raises(NodeError, match="100% packet loss"):
            await ping(lab, Family.IPV4, "-w", "1")


async def test_links_hand_on_packets_as_they_come_wherever_they_end() -> None:
    async with lab_of("site-to-site", "gw1", "gw2") as lab:
        for gateway in ("gw1", "gw2"):
            for interface in ("lan", "wan"):
                settings = (await lab.nodes[gateway].run("ethtool", "-k", interface)).text
                for offload in ("tcp-segmentation", "generic-segmentation", "generic-receive"):
                    assert f"{offload}-offload: off" in settings


async def test_a_kernel_takes_large_files_and_many_calls_at_once() -> None:
    async with lab_of("host-to-host", "host1") as lab:
        kernel = lab.nodes["host1"]
        for size in (4000, 4096, 300_000):
            data = os.urandom(size)
            await kernel.write_file("/run/large", data)
            assert await kernel.read_file("/run/large") == data
        answers = await asyncio.gather(*(kernel.run("echo", "x" * 500) for _ in range(24)))
        assert {answer.text for answer in answers} == {"x" * 500 + "\n"}


async def test_a_kernel_that_panics_fails_its_calls_and_nothing_else() -> None:
    before = set(descendants(os.getpid()))
    async with lab_of("site-to-site", *GATEWAYS) as lab:
        processes = set(descendants(os.getpid())) - before
        kernel = lab.nodes["gw1"]
        waiting = asyncio.create_task(kernel.run("sleep", "1000", timeout=HANGS_SECONDS))
        await kernel.run("true")
        with pytest.raises(NodeError, match="gw1 is gone: Kernel panic"):
            await kernel.write_file("/proc/sysrq-trigger", b"c")
        with pytest.raises(NodeError, match="gw1 is gone: Kernel panic"):
            await waiting
        assert not kernel.alive
        assert "Kernel panic" in (lab.console("gw1") or "")
        with pytest.raises(NodeError, match="gw1 is gone"):
            await kernel.identify()
        await lab.nodes["gw2"].run("true")
    assert survivors(processes) == []


ORCHESTRATOR = """
import asyncio, json, os, sys
from lab_processes import descendants
from test_lab_topologies import GATEWAYS, lab_of

async def main():
    async with lab_of("site-to-site", *GATEWAYS) as lab:
        await lab.nodes["gw1"].spawn("setsid", "sleep", "1000")
        await lab.nodes["host1"].spawn("setsid", "sleep", "1000")
        await lab.nodes["host1"].run("true")
        print(json.dumps(descendants(os.getpid())), flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


def test_an_orchestrator_that_is_killed_leaves_nothing() -> None:
    path = os.pathsep.join(sys.path)
    with subprocess.Popen(
        [sys.executable, "-c", ORCHESTRATOR], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": path}
    ) as orchestrator:
        assert orchestrator.stdout is not None
        processes: list[int] = json.loads(orchestrator.stdout.readline())
        assert len(processes) > 10
        orchestrator.send_signal(signal.SIGKILL)
    assert survivors(processes) == []
