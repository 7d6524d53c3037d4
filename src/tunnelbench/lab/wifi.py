"""A hop of 802.11n with WPA2: a station and an access point on one node, each bridged to an Ethernet link.

The node's kernel simulates two radios (mac80211_hwsim). Its 802.11 stack builds and encrypts every frame,
hands it to the other radio, and decrypts it there. Only the time that a frame takes on the air is missing, so
a limit stands before both radios.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from tunnelbench.errors import UserError
from tunnelbench.lab import messages
from tunnelbench.lab.airtime import limit_airtime
from tunnelbench.lab.bridge import add_bridge, silence
from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.image import Image
from tunnelbench.lab.node import Node
from tunnelbench.lab.topology import WIFI_PORTS

RADIOS = 2

_STATION, _ACCESS_POINT = "station", "ap"
_STATION_BRIDGE, _ACCESS_POINT_BRIDGE = "host-side", "gateway-side"
_DIRECTORY = "/run/wifi"
_NETWORK = "tunnelbench"
_CHANNEL, _MEGAHERTZ = 1, 2412
_UP_SECONDS = 30.0


@dataclass(frozen=True)
class Wifi:
    """A hop of Wi-Fi to build."""

    rate: float
    """What the channel carries in both directions together, bit/s of 802.11's frames."""
    image: Image
    """What its node runs; the kernel must simulate radios."""


def simulates_wifi(image: Image) -> bool:
    """Whether the image's kernel has simulated radios."""
    return "MAC80211_HWSIM" in image.kernel_additions


async def join_by_wifi(node: Node, rate: float, mtu: int) -> str:
    """Makes the node, whose kernel has two radios, a hop of Wi-Fi between its two links.

    `rate` is that of `Wifi`, `mtu` that of the links. Returns what both its ends say that it is. Raises
    UserError where it does not come up, or where they say that it is not what it should be.
    """
    try:
        await _make_bridges(node, mtu)
        await limit_airtime(node, rate)
        station, access_point = await _associate(node, secrets.token_urlsafe(24))
    except NodeError as error:
        raise UserError(f"the hop of Wi-Fi does not come up: {error}") from error
    found = objection(station, access_point)
    if found is not None:
        raise UserError(f"the hop of Wi-Fi is not what it should be: {found}")
    return f"station:\n{station.strip()}\n\naccess point:\n{access_point.strip()}"


_OF_STATION: Mapping[str, str] = {
    "wpa_state": "COMPLETED",
    "wifi_generation": "4",
    "key_mgmt": "WPA2-PSK",
    "pairwise_cipher": "CCMP",
    "group_cipher": "CCMP",
}
"""What `wpa_cli status` must say; the fourth generation is 802.11n."""

_OF_ACCESS_POINT: Mapping[str, str] = {
    "AKMSuiteSelector": "00-0f-ac-2",
    "dot11RSNAStatsSelectedPairwiseCipher": "00-0f-ac-4",
}
"""What `hostapd_cli all_sta` must say of the station: PSK and CCMP (IEEE 802.11-2012, 8.4.2.27)."""


def objection(station: str, access_point: str) -> str | None:
    """What is not as it should be, by what `wpa_cli status` and `hostapd_cli all_sta` say; None if all is."""
    for end, text, wanted in (
        ("station", station, _OF_STATION),
        ("access point", access_point, _OF_ACCESS_POINT),
    ):
        said = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        for key, value in wanted.items():
            if said.get(key) != value:
                return f"its {end} says {key}={said.get(key, '')} instead of {value}"
    if "[HT]" not in access_point:
        return "its access point says nothing of 802.11n (HT)"
    return None


async def _make_bridges(node: Node, mtu: int) -> None:
    await silence(node)
    await node.configure(
        messages.SetLink("wlan0", new_name=_ACCESS_POINT),
        messages.SetLink("wlan1", new_name=_STATION),
    )
    # A bridge takes only a station that says with each frame for whom it is sent, by a fourth address.
    await node.run("iw", "dev", _STATION, "set", "4addr", "on")
    for bridge, port in zip((_STATION_BRIDGE, _ACCESS_POINT_BRIDGE), WIFI_PORTS, strict=True):
        await add_bridge(node, bridge, [port], mtu)
        # Only now: User Mode Linux switches some of them on whenever a link is raised.
        await node.configure(messages.SetLink(port, disable_offloads=True))
    await node.run("ip", "link", "set", _STATION, "master", _STATION_BRIDGE)


async def _associate(node: Node, passphrase: str) -> tuple[str, str]:
    """Starts both ends, which run until the node ends; returns what they say once they are associated."""
    hostapd, wpa_supplicant = f"{_DIRECTORY}/hostapd.conf", f"{_DIRECTORY}/wpa_supplicant.conf"
    await node.write_file(hostapd, _hostapd_configuration(passphrase).encode(), 0o600)
    await node.write_file(wpa_supplicant, _wpa_supplicant_configuration(passphrase).encode(), 0o600)
    access_point = await node.spawn("hostapd", hostapd)
    await access_point.line("AP-ENABLED", _UP_SECONDS)
    station = await node.spawn(
        *("wpa_supplicant", "-D", "nl80211", "-i", _STATION, "-b", _STATION_BRIDGE, "-c", wpa_supplicant)
    )
    await station.line("CTRL-EVENT-CONNECTED", _UP_SECONDS)
    await access_point.line("WDS-STA-INTERFACE-ADDED", _UP_SECONDS)
    # It would sleep between the access point's beacons and be sent frames only then.
    await node.run("iw", "dev", _STATION, "set", "power_save", "off")
    says = await node.run("wpa_cli", "-p", _DIRECTORY, "-i", _STATION, "status")
    hears = await node.run("hostapd_cli", "-p", _DIRECTORY, "-i", _ACCESS_POINT, "all_sta")
    return says.text, hears.text


def _hostapd_configuration(passphrase: str) -> str:
    return f"""\
interface={_ACCESS_POINT}
bridge={_ACCESS_POINT_BRIDGE}
driver=nl80211
ctrl_interface={_DIRECTORY}
ssid={_NETWORK}
hw_mode=g
channel={_CHANNEL}
ieee80211n=1
ht_capab=[SHORT-GI-20]
wmm_enabled=1
wds_sta=1
wpa=2
wpa_key_mgmt=WPA-PSK
rsn_pairwise=CCMP
wpa_passphrase={passphrase}
"""


def _wpa_supplicant_configuration(passphrase: str) -> str:
    return f"""\
ctrl_interface={_DIRECTORY}
network={{
    ssid="{_NETWORK}"
    scan_freq={_MEGAHERTZ}
    proto=RSN
    key_mgmt=WPA-PSK
    pairwise=CCMP
    group=CCMP
    psk="{passphrase}"
}}
"""
