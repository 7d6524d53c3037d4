"""What tinc said in real labs, and which suite that means."""

from __future__ import annotations

import pytest

from tunnelbench.tunnels.tinc import path_is_known, read_nodes

SAID = """\
Statistics for Linux tun/tap device (tun mode) /dev/net/tun:
 total bytes in:         360
 total bytes out:        360
Nodes:
 gw1 at 192.168.0.1 port 655 cipher 419 digest 64 maclength 4 compression 0 options c status 001a nexthop gw1 via gw1 pmtu 1451 (min 1412 max 1451)
 gw2 at MYSELF cipher 0 digest 0 maclength 0 compression 0 options c status 0018 nexthop gw2 via gw2 pmtu 1518 (min 0 max 1518)
End of nodes.
Edges:
 gw1 to gw2 at 192.168.0.2 port 655 options c weight 7
 gw2 to gw1 at 192.168.0.1 port 655 options c weight 7
End of edges.
"""  # noqa: E501
PLAIN = SAID.replace("cipher 419 digest 64", "cipher 0 digest 0").replace("compression 0", "compression 10")


def test_the_suite_is_that_of_packets_to_the_peer() -> None:
    read = read_nodes(SAID)
    assert read.suite == "aes128-sha1"
    assert read.facts == {"compression": "none"}
    assert read.text.startswith("gw1 at 192.168.0.1 port 655 cipher 419")


def test_without_a_hash_there_is_no_code_whatever_its_length() -> None:
    assert read_nodes(PLAIN).suite == "null"
    assert read_nodes(PLAIN).facts == {"compression": "lzo"}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("cipher 419", "cipher 420"),
        ("maclength 4", "maclength 20"),
        ("gw1 at 192.168.0.1", "gw1 at MYSELF"),
        (" gw2 at MYSELF", " gw2 at 192.168.0.2 port 655"),
    ],
)
def test_what_is_no_suite_of_one_peer_is_none(first: str, second: str) -> None:
    assert first in SAID
    assert read_nodes(SAID.replace(first, second)).suite is None


def test_the_path_is_known_once_nothing_larger_could_get_through() -> None:
    assert not path_is_known(SAID)
    assert path_is_known(SAID.replace("min 1412", "min 1451"))
    assert not path_is_known(SAID.replace("gw1 at 192.168.0.1 port 655", "gw1 at MYSELF"))
