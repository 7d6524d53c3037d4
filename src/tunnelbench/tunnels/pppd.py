"""PPP between gateways, for the VPNs that carry its frames: pppd at both ends (RFC 1661).

One end is the server: it asks the other one who it is and tells it its address. Both keep their files in
one directory and their secrets where pppd alone looks for them, and tell what they negotiate in a log.

What differs from pppd's defaults: an MTU of 1400 bytes as VPNs on PPP usually have, so that what they make
of a packet fits a wire of 1500; nothing is compressed unless asked for, headers neither; no echoes.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.lab.features import Feature
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program, without_keys
from tunnelbench.overhead import Layer
from tunnelbench.overhead.layers import mppe, ppp
from tunnelbench.tunnels.base import NO_SUITE, Gateway, Option, ReadBack, Suite, suites
from tunnelbench.tunnels.daemons import start_daemon

INTERFACE = "ppp0"
MTU = 1400
NO_LOCK = "nolock"
"""For PPP on a terminal, which would be locked by a file; without one, pppd takes this for a mistake."""
MPPE_ROOM = 4
"""By how many bytes pppd lowers the MTU with MPPE, whatever that adds."""

MPPE_SUITES = suites(NO_SUITE, Suite("mppe40", "RC4-40", "none"), Suite("mppe128", "RC4-128", "none"))
"""What PPP itself can encrypt with (RFC 3078), with a new key for each packet."""

AUTHENTICATION = Option(
    "authentication",
    ("ms-chap-v2", "chap", "pap"),
    "How the client proves its password: MS-CHAPv2 (RFC 2759), CHAP with MD5 (RFC 1994), or PAP (RFC 1334).",
)
COMPRESSION = Option(
    "compression",
    # BSD Compress (RFC 1977) is no choice: 64-bit Linux loses its sync at the first packet, because
    # bsd_decompress (drivers/net/ppp/bsd_comp.c) extends the sign of what it shifts into a long.
    ("none", "deflate"),
    "How PPP compresses packets: not at all, or with Deflate (RFC 1979).",
)

_REQUIRED = {"ms-chap-v2": "require-mschap-v2", "chap": "require-chap", "pap": "require-pap"}
_METHODS = {"chap MS-v2": "ms-chap-v2", "chap MD5": "chap", "pap": "pap"}
_SECRETS = ("/etc/ppp/chap-secrets", "/etc/ppp/pap-secrets")
_ENCRYPTED = {"MPPE 40-bit": "mppe40", "MPPE 128-bit": "mppe128"}
_COMPRESSED = {"Deflate": "deflate"}

# What CCP, the protocol for both, says once each direction has agreed on something.
_CCP = re.compile(
    r"^((?P<mppe>MPPE \d+-bit) stateless|(?P<compressor>Deflate) \(\d+\)) compression enabled",
    re.MULTILINE,
)
_AUTHENTICATION = re.compile(r"^(?:sent|rcvd) \[LCP ConfAck .*<auth ([^>]+)>.*", re.MULTILINE)
_LOST = "Lost compression sync"
_UP = (r"^local +IP address", r"^local +LL address")


# Makes a unit and has it compress what it sends (linux/ppp-ioctl.h: PPPIOCNEWUNIT, PPPIOCSCOMPRESS).
_TRY_COMPRESSOR = """
import ctypes, fcntl, os, struct, sys
option = ctypes.create_string_buffer(bytes.fromhex(sys.argv[1]))
unit = os.open("/dev/ppp", os.O_RDWR)
fcntl.ioctl(unit, 0xC004743E, struct.pack("i", -1))
fcntl.ioctl(unit, 0x4010744D, struct.pack("PIi", ctypes.addressof(option), len(option) - 1, 1))
"""
_COMPRESSORS = {
    name: Feature(f"{title} in PPP", ("python3", "-c", _TRY_COMPRESSOR, option.hex()))
    for name, title, option in (
        ("mppe40", "MPPE", bytes([18, 6, 1, 0, 0, 0x20, *range(16)])),
        ("mppe128", "MPPE", bytes([18, 6, 1, 0, 0, 0x40, *range(16)])),
        ("deflate", "Deflate", bytes([26, 4, 0x78, 0])),
    )
}
"""With what CCP would offer for them, and for MPPE a key."""


@dataclass(frozen=True)
class Negotiation:
    """What both ends of a PPP link are to agree on."""

    authentication: str = "ms-chap-v2"
    compression: str = "none"
    suite: str = NO_SUITE.name
    """One of `MPPE_SUITES`."""

    @property
    def encrypts(self) -> bool:
        """Whether it is MPPE that packets are encrypted by."""
        return self.suite != NO_SUITE.name

    @property
    def refusal(self) -> str | None:
        """Why PPP can't do this, if it can't."""
        if self.encrypts and self.authentication != "ms-chap-v2":
            return "MPPE takes its keys from MS-CHAPv2 (RFC 3079), so it needs authentication=ms-chap-v2"
        if self.encrypts and self.compression != "none":
            return "PPP negotiates either MPPE or compression: MPPE takes a compressor's place (RFC 3078)"
        return None

    @property
    def rekey_refusal(self) -> str | None:
        """Why it can't be measured what new keys cost; None where there are none."""
        return "MPPE, here without state, has another key for each packet" if self.encrypts else None

    @property
    def facts(self) -> Mapping[str, str]:
        """What `read_log` must find besides the suite."""
        return {"authentication": self.authentication, "compression": self.compression}

    @property
    def mtu(self) -> int:
        """That of the interface."""
        return MTU - MPPE_ROOM * self.encrypts

    @property
    def layers(self) -> tuple[Layer, ...]:
        """What PPP puts around a packet."""
        return (ppp(), mppe(), ppp(address_and_control=False)) if self.encrypts else (ppp(),)

    def features(self, *, user_space: bool) -> frozenset[Feature]:
        """What a kernel must have; `user_space` where frames go through a program."""
        needed = {Feature("PPP (/dev/ppp)", ("sh", "-c", "exec 3<>/dev/ppp"), user_space)}
        for name in (self.suite, self.compression):
            if name in _COMPRESSORS:
                needed.add(_COMPRESSORS[name])
        return frozenset(needed)


def options(negotiation: Negotiation, end: Gateway, *, server: bool) -> Iterator[str]:
    """The lines of an options file for one end (pppd(8))."""
    yield f"name {end.site.gateway}"
    yield f"remotename {end.peer.gateway}"
    if server:
        yield "auth"
        yield _REQUIRED[negotiation.authentication]
    else:
        yield "noauth"
        # Whoever is told an address must not ask for the one that the host's name has.
        yield "noipdefault"
        yield "ipcp-accept-local"
        yield "ipcp-accept-remote"
    yield from _compression(negotiation)
    yield from ("noaccomp", "nopcomp", "novj")
    yield from (f"mtu {MTU}", f"mru {MTU}")
    yield "+ipv6"
    yield "debug"


def _compression(negotiation: Negotiation) -> Iterator[str]:
    match negotiation.suite, negotiation.compression:
        case "mppe40", _:
            yield from ("require-mppe-40", "nomppe-128", "nomppe-stateful")
        case "mppe128", _:
            yield from ("require-mppe-128", "nomppe-40", "nomppe-stateful")
        case _, "deflate":
            yield from ("deflate 15,15", "nobsdcomp", "nopredictor1")
        case _:
            yield "noccp"


def lines(all_lines: Iterable[str]) -> bytes:
    """A file of these lines."""
    return "".join(f"{line}\n" for line in all_lines).encode()


def log_file(directory: str, name: str = "pppd") -> str:
    """Where a pppd that another daemon starts is to write its log."""
    return f"{directory}/{name}.log"


@dataclass(frozen=True)
class Secret:
    """A client's password, with the address that it gets."""

    client: str
    server: str
    address: str
    password: str

    @classmethod
    def fresh(cls, client: Gateway, address: str) -> Secret:
        """A new password for a client."""
        return cls(client.site.gateway, client.peer.gateway, address, secrets.token_hex(16))


async def place_secrets(node: Node, all_secrets: Iterable[Secret], cleanup: AsyncExitStack) -> None:
    """Writes what a node's pppd has to know; with `cleanup` ends all pppd of the node and what they left."""
    text = lines(f"{s.client} {s.server} {s.password} {s.address}" for s in all_secrets)
    for path in _SECRETS:
        before = await node.read_file(path)
        cleanup.push_async_callback(node.write_file, path, before, 0o600)
        await node.write_file(path, text, 0o600)
    cleanup.push_async_callback(node.run, "sh", "-c", _END_ALL)


# They say good-bye to their peers first, and who doesn't answer is waited for up to ten seconds.
_END_ALL = """
pkill -x pppd
tries=0
while pgrep -x pppd > /dev/null; do
    tries=$((tries + 1))
    [ $tries -ne 100 ] || pkill -KILL -x pppd
    sleep 0.02
done
rm -f /run/pppd2.tdb /run/pppd/pppd2.tdb /run/ppp*.pid
"""


async def watch(end: Gateway, directory: str, cleanup: AsyncExitStack, name: str = "pppd") -> Program:
    """Prints pppd's log as it grows."""
    path = log_file(directory, name)
    await end.node.write_file(path, b"", 0o600)
    return await start_daemon(end.node, cleanup, "tail", "--follow", "--lines=+1", path)


async def wait_until_up(log: Program, timeout: float) -> None:
    """Waits until pppd has its addresses of both families."""
    for pattern in _UP:
        await log.line(pattern, timeout)


async def guard(end: Gateway, interface: str, cleanup: AsyncExitStack) -> Program:
    """A program that ends when the pppd of an interface does."""
    process = (await end.node.read_file(f"/run/{interface}.pid")).decode().strip()
    return await start_daemon(end.node, cleanup, "tail", "--follow", f"--pid={process}", "/dev/null")


def read_log(log: str) -> ReadBack:
    """What pppd's log says of encryption, compression and authentication."""
    if not re.search(_UP[0], log, re.MULTILINE):
        return ReadBack(None, without_keys(log.strip()))
    asked, in_use = _last(_AUTHENTICATION, log), _last(_CCP, log)
    mppe, compressor = (in_use["mppe"], in_use["compressor"]) if in_use else (None, None)
    words = [found[0] for found in (asked, in_use) if found] or ["neither authentication nor compression"]
    return ReadBack(
        _ENCRYPTED.get(mppe) if mppe else NO_SUITE.name,
        "\n".join(words),
        {
            "authentication": _METHODS.get(asked[1], asked[1]) if asked else "none",
            "compression": _COMPRESSED[compressor] if compressor and _LOST not in log else "none",
        },
    )


def _last(pattern: re.Pattern[str], log: str) -> re.Match[str] | None:
    return max(pattern.finditer(log), key=lambda found: found.start(), default=None)
