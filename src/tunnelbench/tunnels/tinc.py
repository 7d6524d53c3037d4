"""tinc 1.0: a mesh VPN in user space with any cipher and hash of OpenSSL for its packets.

Both ends know each other by RSA keys of 2048 bits. Packets go over UDP; keys and news of the mesh go over a
TCP connection beside it, encrypted with ciphers of its own. What differs from what one may expect:

- tinc cuts codes to four bytes by default (`MACLength`), so HMAC-SHA-1 is HMAC-SHA-1-32 here.
- Until it has found the path's MTU, by probes once a second, tinc sends larger packets over the TCP
  connection, which has another cipher. So the tunnel counts as up only once both ends know it: some seconds.
- A packet that does not fit the path is fragmented inside the tunnel, or answered with "packet too big".
- Keys change each hour (`KeyExpire`); nothing can force it.
"""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.features import TUN, Feature
from tunnelbench.lab.program import Program
from tunnelbench.lab.together import together
from tunnelbench.lab.topology import Family, Site
from tunnelbench.overhead import Encapsulation, Field, Kind, Layer, Padding
from tunnelbench.overhead import layers as formats
from tunnelbench.overhead.algorithms import block_bytes
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Option,
    ReadBack,
    Suite,
    Tunnel,
    Variant,
    options,
    suites,
)
from tunnelbench.tunnels.daemons import all_print, place_files, seconds_between, start_daemon
from tunnelbench.tunnels.point_to_point import join

INTERFACE = "tinc0"
DIRECTORY = "/run/tinc"
PORT = 655
READY_SECONDS = 30.0
"""How long a step may take."""

_PATH_SECONDS = 45.0
"""How long the search for the path's MTU may take: tinc settles for what got through after 30 probes, one a
second, which it needs where compression makes the largest probes longer than what they probe for."""

_LOOK_EVERY_SECONDS = 1.0
"""As often as tinc probes, and not while the connection is young: tinc writes what it knows inside its signal
handler, and dies now and then if that interrupts it at work."""
_KEY_BITS = 2048
# Without its legacy provider OpenSSL 3 has no Blowfish, CAST and DES; OpenSSL 1.1 passes over it.
_OPENSSL = b"""\
openssl_conf = all
[all]
providers = both
[both]
default = on
legacy = on
[on]
activate = 1
"""

_CIPHERS = {
    "aes128": ("aes-128-cbc", "AES-128-CBC", 419),
    "aes192": ("aes-192-cbc", "AES-192-CBC", 423),
    "aes256": ("aes-256-cbc", "AES-256-CBC", 427),
    "blowfish": ("bf-cbc", "Blowfish-128-CBC", 91),
    "cast128": ("cast5-cbc", "CAST-128-CBC", 108),
    "camellia128": ("camellia-128-cbc", "Camellia-128-CBC", 751),
    "3des": ("des-ede3-cbc", "3DES-CBC", 44),
    "null": ("none", "none", 0),
}
"""By the name of suites: the names of OpenSSL and of reports, and OpenSSL's number."""
_DIGESTS = {"md5": ("HMAC-MD5-32", 4), "sha1": ("HMAC-SHA-1-32", 64), "sha256": ("HMAC-SHA-256-32", 672)}
_COMPRESSIONS = {"none": "0", "zlib": "6", "lzo": "10"}

_NODE = re.compile(
    r"^ \S+ at (?!MYSELF)\S+ port \d+ cipher (\d+) digest (\d+) maclength (\d+) compression (\d+) "
    r"options .* pmtu (\d+) \(min (\d+) max (\d+)\)",
    re.MULTILINE,
)
"""What tinc knows of its peer, as it says on SIGUSR2."""


@dataclass(frozen=True)
class TincSuite(Suite):
    """A suite, and what tinc calls its parts."""

    cipher: str
    digest: str
    numbers: tuple[int, int]
    """OpenSSL's numbers of both, as tinc shows them."""


def _all_suites() -> Iterable[TincSuite]:
    for name, (cipher, encryption, number) in _CIPHERS.items():
        for digest, (integrity, digest_number) in _DIGESTS.items():
            yield TincSuite(
                f"{name}-{digest}", encryption, integrity, cipher, digest, (number, digest_number)
            )
    yield TincSuite("null", "none", "none", "none", "none", (0, 0))


class Tinc(Tunnel):
    """tincd on both gateways; the left one calls."""

    name = "tinc"
    title = "tinc 1.0"
    suites = suites(*_all_suites())
    options = options(
        Option("device", ("tun", "tap"), "Whether tinc routes IP packets or switches Ethernet frames."),
        Option("compression", ("none", "zlib", "lzo"), "How each packet is compressed before encryption."),
    )
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def needs(self, variant: Variant) -> Needs:
        """tinc, the suite's cipher in OpenSSL, and TUN devices."""
        suite = _as_tinc(variant.suite)
        features = {TUN} if suite.cipher == "none" else {TUN, _has_cipher(suite.cipher)}
        return Needs(programs=frozenset({"tincd", "openssl"}), features=frozenset(features))

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """UDP, a sequence number and a frame in whole blocks, and a code: frames even where tinc routes."""
        block = block_bytes(variant.suite.encryption)
        layer = Layer(
            "tinc",
            "tinc 1.0 manual",
            (Field("sequence number", 4, Kind.TUNNEL), Field("Ethernet header", 14, Kind.LINK)),
            Padding(block, counted=18, minimum=1) if block > 1 else None,
            (Field("code", 0 if variant.suite.integrity == "none" else 4, Kind.INTEGRITY),),
        )
        layers = (formats.ip(variant.outer), formats.udp(), layer)
        return Encapsulation(layers, compresses=variant["compression"] != "none")

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts the right end, which waits, then the left one, and waits until both know the path's MTU."""
        keys = {end.site.gateway: rsa.generate_private_key(65537, _KEY_BITS) for end in (left, right)}
        server = await _start(right, keys, variant, cleanup, calls=False)
        await server.line("Ready", READY_SECONDS)
        client = await _start(left, keys, variant, cleanup, calls=True)
        daemons = (client, server)
        await all_print("Connection with .* activated", daemons, READY_SECONDS)
        await join(left, right, INTERFACE, cleanup, ethernet=variant["device"] == "tap")
        await together(*map(_find_path, daemons))

        async def read_back() -> ReadBack:
            return ReadBack.agreed([read_nodes(await _dump(daemon)) for daemon in daemons])

        return Established(
            wire=frozenset({f"{variant.outer} udp {PORT}", f"{variant.outer} tcp"}),
            read_back=read_back,
            programs=daemons,
            facts={"compression": variant["compression"]},
            compresses=variant["compression"] != "none",
            rekey_refusal="tinc takes no order for them, and makes them once an hour",
            handshake_seconds=seconds_between(client, "Trying to connect", daemons, "activated"),
        )


TUNNEL = Tinc()


def _as_tinc(suite: Suite) -> TincSuite:
    assert isinstance(suite, TincSuite)
    return suite


def _has_cipher(cipher: str) -> Feature:
    check = (
        'printf "$0" > /tmp/openssl.cnf; '
        'OPENSSL_CONF=/tmp/openssl.cnf openssl enc "-$1" -k try -in /etc/hosts'
    )
    return Feature(f"OpenSSL with {cipher}", ("sh", "-c", check, _OPENSSL.decode(), cipher))


async def _start(
    end: Gateway,
    keys: Mapping[str, rsa.RSAPrivateKey],
    variant: Variant,
    cleanup: AsyncExitStack,
    *,
    calls: bool,
) -> Program:
    own = keys[end.site.gateway].private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    files = {
        "openssl.cnf": _OPENSSL,
        "tinc.conf": "\n".join(_configuration(end, variant, calls=calls)).encode(),
        "rsa_key.priv": own,
    }
    await place_files(end.node, DIRECTORY, files, cleanup)
    hosts = {
        name: "\n".join(_host(site, variant)).encode() + _public(keys[name])
        for name, site in ((end.site.gateway, end.site), (end.peer.gateway, end.peer))
    }
    await place_files(end.node, f"{DIRECTORY}/hosts", hosts, cleanup)
    return await start_daemon(
        *(end.node, cleanup, "tincd", "--config", DIRECTORY, "--no-detach", "--debug=1"),
        f"--pidfile={DIRECTORY}/pid",
        environment={"OPENSSL_CONF": f"{DIRECTORY}/openssl.cnf"},
    )


def _configuration(end: Gateway, variant: Variant, *, calls: bool) -> Iterable[str]:
    yield f"Name = {end.site.gateway}"
    yield f"AddressFamily = {variant.outer}"
    yield f"BindToAddress = {end.outside}"
    yield f"Interface = {INTERFACE}"
    yield f"DeviceType = {variant['device']}"
    yield f"Mode = {'switch' if variant['device'] == 'tap' else 'router'}"
    if calls:
        yield f"ConnectTo = {end.peer.gateway}"


def _host(site: Site, variant: Variant) -> Iterable[str]:
    suite = _as_tinc(variant.suite)
    yield f"Address = {site.outside.address(variant.outer)}"
    yield f"Cipher = {suite.cipher}"
    yield f"Digest = {suite.digest}"
    yield f"Compression = {_COMPRESSIONS[variant['compression']]}"
    if variant["device"] == "tun":
        for family in Family:
            yield f"Subnet = {site.inside.network(family)}"
    yield ""


def _public(key: rsa.RSAPrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.PKCS1)


async def _find_path(daemon: Program) -> None:
    """Asks until the path's MTU is known."""
    try:
        async with asyncio.timeout(_PATH_SECONDS):
            while True:
                await asyncio.sleep(_LOOK_EVERY_SECONDS)
                if path_is_known(await _dump(daemon)):
                    return
    except TimeoutError:
        raise NodeError(
            f"tincd did not find the path's MTU within {_PATH_SECONDS:g} s; its last lines:\n"
            f"{daemon.log_tail()}"
        ) from None


def path_is_known(nodes: str) -> bool:
    """Whether the largest packet that got through to the peer is the largest that could."""
    found = [node.groups()[4:] for node in _NODE.finditer(nodes)]
    return bool(found) and all(least == most for _, least, most in found)


async def _dump(daemon: Program) -> str:
    """Has tinc say what it knows of the mesh."""
    before, asked = len(daemon.stderr), asyncio.get_running_loop().time()
    await daemon.signal(signal.SIGUSR2)
    await daemon.line("End of subnet list", READY_SECONDS, after=asked)
    return daemon.stderr[before:].decode(errors="replace")


def read_nodes(text: str) -> ReadBack:
    """The suite for packets to the peer, and how they are compressed."""
    peers = list(_NODE.finditer(text))
    if len(peers) != 1:
        return ReadBack(None, text.strip())
    cipher, digest, length, level, *_ = peers[0].groups()
    numbers = (int(cipher), int(digest))
    names = {suite.numbers: suite.name for suite in _all_suites()}
    compressions = {level: name for name, level in _COMPRESSIONS.items()}
    # Without a hash there is no code, whatever its length is said to be.
    right_length = numbers[1] == 0 or length == "4"
    return ReadBack(
        names.get(numbers) if right_length else None,
        peers[0][0].strip(),
        {"compression": compressions.get(level, f"level {level}")},
    )
