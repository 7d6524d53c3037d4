"""What OpenVPN and its network interface say of a running tunnel: its suite, other facts, its handshake.

The log is that of verbosity 4, where lines begin with the time in seconds since the epoch and the message's
flags (`machine-readable-output`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from tunnelbench.tunnels.base import ReadBack
from tunnelbench.tunnels.openvpn_suites import SUITES

_KEYINGS = {"Data Channel": "tls", "Static Key Encryption": "static"}
_OFFLOADING = ("ovpn", "ovpn-dco")
"""The kinds of links whose packets the kernel encrypts: in Linux itself, and as a module of its own."""

_KEY_MADE = re.compile(
    r"^(?P<prefix>.*)(?P<line>(?P<direction>Outgoing|Incoming) "
    r"(?P<title>Data Channel|Static Key Encryption): "
    r"(?:Cipher '(?P<cipher>.+)' init|Using .+ message hash '(?P<hash>.+)' for).*)",
    re.MULTILINE,
)
"""What is logged of each key of the data channel."""
_SUMMARY = re.compile(r"^(?P<prefix>.*)(?P<line>\bData Channel: cipher '(?P<cipher>[^']+)', peer-id.*)", re.M)
_COMPRESSION = re.compile(r"(LZO|LZ4)(?:v2)? compression initializing")
_CARRIER = re.compile(r"\b(UDP|TCP)v[46]\S* link remote")
_CONTROL_CHANNEL = re.compile(r"Control Channel: (TLSv[\d.]+), cipher \S+ ([\w-]+)(.*)")
_TEMPORARY_KEY = re.compile(r"peer temporary key: (.+)")
_FIRST_PACKET = "TLS: Initial packet from"
_HANDSHAKE = re.compile(rf"^(\d+\.\d+) .*?({_FIRST_PACKET}|Peer Connection Initiated with) ([^\s,]+)", re.M)


class _LinkData(msgspec.Struct):
    type: str = "tun"


class _LinkInformation(msgspec.Struct):
    info_kind: str
    info_data: _LinkData = msgspec.field(default_factory=_LinkData)


class _Link(msgspec.Struct):
    linkinfo: _LinkInformation


def read_log(log: str, peer: str = "") -> ReadBack:
    """The suite of the newest keys, if the log tells of the same for both directions; and facts.

    A server says of each client what the lines about its `peer` have in them. Where nothing is encrypted
    there is no line about a cipher, and for an AEAD none about a hash.
    """
    made_for_peer = [made for made in _KEY_MADE.finditer(log) if peer in made["prefix"]]
    if not made_for_peer:
        return _read_summary(log, peer)
    newest: dict[str, list[str]] = {}
    keyings: set[str] = set()
    for made in made_for_peer:
        direction, cipher, hashed = made["direction"], made["cipher"], made["hash"]
        keyings.add(_KEYINGS[made["title"]])
        if cipher:
            newest[direction] = [cipher]
        elif len(newest.get(direction, [])) == 1:
            newest[direction].append(hashed)
        else:
            newest[direction] = ["none", hashed]
    both_alike = len(newest) == 2 and newest["Outgoing"] == newest["Incoming"]
    name = "-".join(newest["Outgoing"]).lower() if both_alike else None
    facts = {"keying": keyings.pop()} | dict(_facts(log)) if len(keyings) == 1 else {}
    lines = "\n".join(made["line"] for made in made_for_peer)
    return ReadBack(name if name in SUITES else None, lines, facts)


def _read_summary(log: str, peer: str) -> ReadBack:
    """Of keys that the kernel encrypts with there is but a line that sums the data channel up."""
    summed_up = [found for found in _SUMMARY.finditer(log) if peer in found["prefix"]]
    if not summed_up:
        return ReadBack(None, "")
    newest = summed_up[-1]
    name = newest["cipher"].lower()
    facts = {"keying": "tls"} | dict(_facts(log))
    return ReadBack(name if name in SUITES else None, newest["line"], facts)


def read_link(shown: str) -> dict[str, str]:
    """Facts about a network interface, as `ip -json -details link show` tells of it."""
    (link,) = msgspec.json.decode(shown, type=list[_Link])
    return {
        "device": link.linkinfo.info_data.type,
        "offload": "yes" if link.linkinfo.info_kind in _OFFLOADING else "no",
    }


def handshakes(log: str) -> list[float]:
    """How many seconds the TLS handshake with each peer took: from its first packet until it is known."""
    began: dict[str, float] = {}
    ended: dict[str, float] = {}
    for time, event, peer in _HANDSHAKE.findall(log):
        (began if event == _FIRST_PACKET else ended).setdefault(peer, float(time))
    return [ended[peer] - began[peer] for peer in began if peer in ended]


def _facts(log: str) -> Iterator[tuple[str, str]]:
    if carrier := _CARRIER.search(log):
        yield "carrier", carrier[1].lower()
    compression = _COMPRESSION.search(log)
    yield "compression", compression[1].lower() if compression else "none"
    if control := _CONTROL_CHANNEL.search(log):
        version, cipher, rest = control.groups()
        yield "TLS version", version
        yield "TLS cipher", cipher
        if temporary := _TEMPORARY_KEY.search(rest):
            yield "key agreement", temporary[1]
