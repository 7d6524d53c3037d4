"""A hop of Wi-Fi: where it is, what both its ends must say, and that packets cross it encrypted."""

from __future__ import annotations

import json
import os
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import pytest
from lab_processes import descendants, survivors

from tunnelbench.lab.cleanliness import leftovers, snapshot
from tunnelbench.lab.image import Image, find, list_images
from tunnelbench.lab.lab import Lab, LabPlan, Runtime
from tunnelbench.lab.topology import TOPOLOGIES, Family, Link, LinkEnd, with_wifi
from tunnelbench.lab.wifi import Wifi, objection, simulates_wifi
from tunnelbench.tunnels.base import bring_up
from tunnelbench.tunnels.plain import TUNNEL as PLAIN_IP

SITE_TO_SITE = TOPOLOGIES["site-to-site"]
BEHIND_WIFI = with_wifi(SITE_TO_SITE)

STATION = """\
bssid=02:00:00:00:00:00
freq=2412
ssid=tunnelbench
mode=station
wifi_generation=4
pairwise_cipher=CCMP
group_cipher=CCMP
key_mgmt=WPA2-PSK
wpa_state=COMPLETED
address=02:00:00:00:01:00
"""
ACCESS_POINT = """\
02:00:00:00:01:00
flags=[AUTH][ASSOC][AUTHORIZED][WMM][WDS][HT]
AKMSuiteSelector=00-0f-ac-2
dot11RSNAStatsSelectedPairwiseCipher=00-0f-ac-4
hostapdWPAPTKState=11
"""


def image_with(*additions: str) -> Image:
    return Image(
        name="some",
        release="bookworm",
        directory=Path("/nowhere"),
        suites=("bookworm",),
        kernel="/usr/bin/linux.uml",
        kernel_version="6.1",
        modules_version="6.1",
        packages={},
        kernel_additions=additions,
        built_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def test_the_hop_stands_between_the_first_host_and_its_gateway() -> None:
    assert BEHIND_WIFI.links == (
        Link(LinkEnd("host1", "eth0"), LinkEnd("wifi", "host")),
        Link(LinkEnd("wifi", "gateway"), LinkEnd("gw1", "lan")),
        *SITE_TO_SITE.links[1:],
    )
    assert (BEHIND_WIFI.addresses, BEHIND_WIFI.wire) == (SITE_TO_SITE.addresses, SITE_TO_SITE.wire)
    assert set(BEHIND_WIFI.nodes) - set(SITE_TO_SITE.nodes) == {BEHIND_WIFI.wifi}


def test_it_is_a_kernel_whatever_the_others_are() -> None:
    plan = LabPlan(BEHIND_WIFI, image_with(), wifi=Wifi(20e6, image_with("MAC80211_HWSIM")))
    assert (plan.runtime("wifi"), plan.runtime("gw1")) == (Runtime.KERNEL, Runtime.NAMESPACE)
    assert (simulates_wifi(plan.image_of("wifi")), simulates_wifi(plan.image_of("gw1"))) == (True, False)


def test_hosts_that_are_gateways_have_no_room_for_it() -> None:
    with pytest.raises(ValueError, match="host-to-host has no link"):
        with_wifi(TOPOLOGIES["host-to-host"])


def test_what_is_as_it_should_be_meets_no_objection() -> None:
    assert objection(STATION, ACCESS_POINT) is None


@pytest.mark.parametrize(
    ("said", "instead", "complaint"),
    [
        ("key_mgmt=WPA2-PSK", "key_mgmt=NONE", "its station says key_mgmt=NONE instead of WPA2-PSK"),
        ("wifi_generation=4\n", "", "its station says wifi_generation= instead of 4"),
        ("pairwise_cipher=CCMP", "pairwise_cipher=TKIP", "pairwise_cipher=TKIP instead of CCMP"),
        ("wpa_state=COMPLETED", "wpa_state=SCANNING", "wpa_state=SCANNING"),
        (
            "Cipher=00-0f-ac-4",
            "Cipher=00-0f-ac-2",
            "its access point says dot11RSNAStatsSelectedPairwiseCipher",
        ),
        ("AKMSuiteSelector=00-0f-ac-2", "", "its access point says AKMSuiteSelector= instead of"),
        ("[HT]", "", "says nothing of 802.11n"),
    ],
)
def test_anything_else_is_objected_to(said: str, instead: str, complaint: str) -> None:
    ends = [text.replace(said, instead) for text in (STATION, ACCESS_POINT)]
    assert complaint in (objection(*ends) or "")


@pytest.mark.lab
@pytest.mark.parametrize("runtime", list(Runtime))
async def test_packets_cross_it_encrypted_and_within_its_airtime(runtime: Runtime) -> None:
    image = next(filter(simulates_wifi, list_images()), None)
    if image is None:
        pytest.skip("no image has a kernel that simulates Wi-Fi: build one with --kernel source")
    before = set(descendants(os.getpid()))
    runtimes = dict.fromkeys(BEHIND_WIFI.gateways, runtime)
    async with Lab(LabPlan(BEHIND_WIFI, find(), runtimes, wifi=Wifi(20e6, image))) as lab:
        processes = set(descendants(os.getpid())) - before
        at_first = await snapshot(lab.nodes["wifi"])
        async with AsyncExitStack() as cleanup:
            await bring_up(lab, PLAIN_IP, PLAIN_IP.variant("none"), cleanup)
            for family in Family:
                await _cross_encrypted(lab, family)
            assert 0 < await _throughput(lab) < 20e6
        assert objection(*lab.wifi_read_back.split("access point:")) is None
        assert "psk=" not in lab.wifi_read_back.casefold()
        assert await leftovers(lab.nodes["wifi"], at_first) == ()
    assert survivors(processes) == []


async def _cross_encrypted(lab: Lab, family: Family) -> None:
    """Pings with a marker, which is read on both links of the hop and never between its radios."""
    hop, marker = lab.nodes["wifi"], b"\xfe\xed\xfa\xce" * 4
    await hop.run("ip", "link", "set", "hwsim0", "up")
    places = ("host", "hwsim0", "gateway")
    captures = [await hop.start_capture(place, [marker]) for place in places]
    version = "-4" if family is Family.IPV4 else "-6"
    ping = ("ping", version, "-c", "5", "-i", "0.1", "-w", "30", "-p", "feedface", "host2")
    await lab.nodes["host1"].run(*ping, timeout=60.0)
    flows = [(await capture.stop()).flows for capture in captures]
    await hop.run("ip", "link", "set", "hwsim0", "down")
    readable = [sum(flow.marked[0] for flow in seen) for seen in flows]
    assert readable[1] == 0
    assert sum(flow.packets for flow in flows[1]) >= 10
    assert min(readable[0], readable[2]) >= 10


async def _throughput(lab: Lab) -> float:
    """Of TCP from host1 to host2, bit/s."""
    server = await lab.nodes["host2"].spawn("iperf3", "--server", "--one-off", "--forceflush")
    await server.line("Server listening", 10.0)
    client = await lab.nodes["host1"].run("iperf3", "-c", "host2", "-t", "3", "-J", timeout=60.0)
    return json.loads(client.text)["end"]["sum_received"]["bits_per_second"]
