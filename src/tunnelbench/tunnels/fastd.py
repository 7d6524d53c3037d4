"""fastd: a small VPN in user space, common in community networks, with a method for each cipher and code.

A method is a cipher and a message authentication code: Salsa20 or Salsa20/12 or AES-128 in counter mode, with
UMAC, GMAC or Poly1305. What `null` is called encrypts nothing; with a code it authenticates what it leaves
readable. `null-l2tp` writes nothing readable into its header either, and looks like L2TPv3 on the wire
(fastd 22 and later).

The device keeps fastd's MTU of 1500, so that a datagram that fills it leaves the gateway in two fragments.
There is no way to force new keys: a reset (SIGUSR2) drops the session, and the peer takes no handshake for a
while because of those that it has had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from tunnelbench.lab.features import TUN, Feature
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation, Field, Inner, Kind, Layer, Oversize
from tunnelbench.overhead import layers as formats
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Option,
    Place,
    ReadBack,
    Suite,
    Tunnel,
    Variant,
    options,
    suites,
)
from tunnelbench.tunnels.daemons import all_print, place_files, printed, seconds_between, start_daemon
from tunnelbench.tunnels.point_to_point import join

INTERFACE = "fastd0"
DIRECTORY = "/run/fastd"
PORT = 10000
READY_SECONDS = 20.0
"""How long a step may take; idle all take less than half a second together."""

_SESSION = re.compile(r"new session with <.+> established using method `(.+)'")
_CIPHERS = {
    "salsa2012": ("salsa2012", "Salsa20/12"),
    "salsa20": ("salsa20", "Salsa20"),
    "aes128-ctr": ("aes128-ctr", "AES-128-CTR"),
    "null": ("null+salsa2012", "none"),
}


@dataclass(frozen=True)
class FastdSuite(Suite):
    """A suite, and what fastd calls it."""

    method: str


def _all_suites() -> Iterable[FastdSuite]:
    yield FastdSuite("null", "none", "none", "null")
    yield FastdSuite("null-l2tp", "none", "none", "null@l2tp")
    for name, (cipher, encryption) in _CIPHERS.items():
        for code in ("umac", "gmac", "poly1305"):
            # fastd takes GMAC with AES from one cipher alone, and Poly1305 with a cipher that encrypts.
            if (name, code) not in (("aes128-ctr", "gmac"), ("null", "poly1305")):
                yield FastdSuite(
                    f"{name}-{code}", encryption, code.replace("poly", "Poly"), f"{cipher}+{code}"
                )
    yield FastdSuite("aes128-gcm", "AES-128-GCM", "with the cipher", "aes128-gcm")


class Fastd(Tunnel):
    """fastd on both gateways, each with a key pair of its own."""

    name = "fastd"
    title = "fastd"
    suites = suites(*_all_suites())
    options = options(
        Option(
            "device", ("tun", "tap"), "Whether the gateways are joined by IP packets or by Ethernet frames."
        )
    )
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """Debian 11's fastd has no method null@l2tp."""
        if variant.suite.name == "null-l2tp" and place.release == "bullseye":
            return "fastd 21 has no method null@l2tp; bookworm and trixie have it"
        return None

    def needs(self, variant: Variant) -> Needs:
        """fastd with the method, and TUN devices."""
        method = _as_fastd(variant.suite).method
        check = ("fastd", "--verify-config", "--mode", "tun", "--interface", INTERFACE, "--method", method)
        return Needs(
            programs=frozenset({"fastd"}), features=frozenset({TUN, Feature(f"fastd with {method}", check)})
        )

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """UDP, fastd's header, a packet or frame, and a code of 16 bytes but for the bare methods."""
        method = _as_fastd(variant.suite).method
        sizes = {"null": (1, 0), "null@l2tp": (8, 0)}
        head, code = sizes.get(method, (8, 16))
        layer = Layer(
            "fastd",
            "fastd documentation",
            (Field("fastd header", head, Kind.TUNNEL),),
            after=(Field("code", code, Kind.INTEGRITY),),
        )
        return Encapsulation(
            (formats.ip(variant.outer), formats.udp(), layer),
            Inner.PACKET if variant["device"] == "tun" else Inner.FRAME,
            inner_mtu=1500,
            oversize=Oversize.FRAGMENTED_AFTER,
        )

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts the right end, which waits, then the left one, which begins a handshake."""
        left_key, right_key = await _new_key(left), await _new_key(right)
        server = await _start(right, right_key, left_key, variant, cleanup, calls=False)
        await server.line("TUN/TAP device .* initialized", READY_SECONDS)
        client = await _start(left, left_key, right_key, variant, cleanup, calls=True)
        daemons = (client, server)
        await all_print("new session with", daemons, READY_SECONDS)
        await join(left, right, INTERFACE, cleanup, ethernet=variant["device"] == "tap")

        async def read_back() -> ReadBack:
            return ReadBack.agreed(read_log(printed(daemon)) for daemon in daemons)

        return Established(
            wire=frozenset({f"{variant.outer} udp {PORT}"}),
            read_back=read_back,
            programs=daemons,
            rekey_refusal="nothing makes fastd take new ones: a reset drops the session",
            handshake_seconds=seconds_between(client, "sending handshake", daemons, "new session with"),
        )


TUNNEL = Fastd()


@dataclass(frozen=True)
class _Key:
    secret: str
    public: str


def _as_fastd(suite: Suite) -> FastdSuite:
    assert isinstance(suite, FastdSuite)
    return suite


async def _new_key(end: Gateway) -> _Key:
    """By fastd itself: it writes points of Curve25519 in a way of its own."""
    text = (await end.node.run("fastd", "--generate-key")).text
    secret, public = re.findall(r"\b[0-9a-f]{64}\b", text)
    return _Key(secret, public)


async def _start(
    end: Gateway, own: _Key, peer: _Key, variant: Variant, cleanup: AsyncExitStack, *, calls: bool
) -> Program:
    """Two ends that both call hinder each other, so that only one knows where the other is."""
    remote = [f"  remote {_endpoint(end.peer_outside)};"] if calls else []
    configuration = "\n".join(_configuration(end, own, peer, variant, remote)).encode()
    await place_files(end.node, DIRECTORY, {"fastd.conf": configuration}, cleanup)
    return await start_daemon(
        end.node, cleanup, "fastd", "--config", f"{DIRECTORY}/fastd.conf", "--log-level", "debug"
    )


def _configuration(
    end: Gateway, own: _Key, peer: _Key, variant: Variant, remote: Iterable[str]
) -> Iterable[str]:
    yield f'method "{_as_fastd(variant.suite).method}";'
    yield f"mode {variant['device']};"
    yield f'interface "{INTERFACE}";'
    yield f"bind {_endpoint(end.outside)};"
    yield f'secret "{own.secret}";'
    yield f'peer "{end.peer.gateway}" {{'
    yield f'  key "{peer.public}";'
    yield from remote
    yield "}"


def _endpoint(address: IPv4Address | IPv6Address) -> str:
    return f"{address}:{PORT}" if address.version == 4 else f"[{address}]:{PORT}"


def read_log(log: str) -> ReadBack:
    """The suite of the newest session."""
    sessions = list(_SESSION.finditer(log))
    names = {suite.method: suite.name for suite in _all_suites()}
    return ReadBack(names.get(sessions[-1][1]) if sessions else None, "\n".join(line[0] for line in sessions))
