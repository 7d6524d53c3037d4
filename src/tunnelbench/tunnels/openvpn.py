"""OpenVPN: TLS mode over UDP with a tun device between the gateways; a program encrypts each packet.

What is not named in the configuration is OpenVPN's default. So the tun device has an MTU of 1500, while
`mssfix` has TCP send segments whose encrypted packets fit 1492 bytes: TCP is not fragmented, but a UDP
datagram that fills the MTU leaves the gateway in two fragments. And ciphers with blocks of 64 bits get new
keys every 64 MB (`reneg-bytes`). Compression and data channel offload stay off.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.lab.features import TUN, Feature
from tunnelbench.lab.program import Program
from tunnelbench.tunnels.base import Established, Gateway, Needs, ReadBack, Suite, Tunnel, Variant, suites
from tunnelbench.tunnels.certificates import Authority, Identity, Role
from tunnelbench.tunnels.daemons import all_print, place_files, printed, start_daemon
from tunnelbench.tunnels.point_to_point import INNER_ADDRESSES

INTERFACE = "tun0"
DIRECTORY = "/run/openvpn"
PORT = 1194
READY_SECONDS = 20.0
"""How long both ends may take together; idle they take one to two."""

_CIPHERS = {
    "AES-128-CBC": "AES-128-CBC",
    "AES-192-CBC": "AES-192-CBC",
    "AES-256-CBC": "AES-256-CBC",
    "BF-CBC": "Blowfish-128-CBC",
    "DES-CBC": "DES-CBC",
    "DES-EDE3-CBC": "3DES-CBC",
    "none": "none",
}
_HASHES = {"MD5": "HMAC-MD5", "SHA1": "HMAC-SHA-1", "SHA256": "HMAC-SHA-256"}
_AEADS = {
    "AES-128-GCM": "AES-128-GCM",
    "AES-256-GCM": "AES-256-GCM",
    "CHACHA20-POLY1305": "ChaCha20-Poly1305",
}

# Without its legacy provider OpenSSL 3 has neither Blowfish nor DES; OpenVPN 2.5 knows neither option.
_PROVIDERS = ("ignore-unknown-option providers disable-dco", "providers legacy default")

_KEY_MADE = re.compile(
    r"^(Outgoing|Incoming) Data Channel: (?:Cipher '(.+)' init|Using .+ message hash '(.+)' for).*",
    re.MULTILINE,
)
"""What OpenVPN logs of each key that it makes, from verbosity 4 on."""


@dataclass(frozen=True)
class OpenVpnSuite(Suite):
    """A suite, and what OpenVPN calls its parts."""

    cipher: str
    """For `data-ciphers`."""
    hash: str | None
    """For `auth`; None for an AEAD, which needs none."""


def _all_suites() -> list[OpenVpnSuite]:
    classic = [
        OpenVpnSuite(f"{cipher}-{hash_name}".lower(), encryption, integrity, cipher, hash_name)
        for cipher, encryption in _CIPHERS.items()
        for hash_name, integrity in _HASHES.items()
    ]
    combined = [
        OpenVpnSuite(cipher.lower(), encryption, "with the cipher", cipher, None)
        for cipher, encryption in _AEADS.items()
    ]
    return classic + combined


class OpenVpn(Tunnel):
    """OpenVPN between the gateways, each certain of the other by a certificate."""

    name = "openvpn"
    title = "OpenVPN"
    suites = suites(*_all_suites())

    def in_kernel(self, variant: Variant) -> bool:
        """Never."""
        return False

    def needs(self, variant: Variant) -> Needs:
        """OpenVPN with the suite's cipher, and TUN devices."""
        cipher = _as_openvpn(variant.suite).cipher
        features = {TUN} if cipher == "none" else {TUN, _has_cipher(cipher)}
        return Needs(programs=frozenset({"openvpn"}), features=frozenset(features))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts the server on the right gateway, then the client on the left one."""
        configured, authority = _as_openvpn(variant.suite), Authority()
        server = await _start(right, "server", configured, authority, cleanup)
        client = await _start(left, "client", configured, authority, cleanup)
        daemons = (server, client)
        await all_print("Initialization Sequence Completed", daemons, READY_SECONDS)
        for end in (left, right):
            await end.route_to_peer(cleanup, interface=INTERFACE)

        async def read_back() -> ReadBack:
            return ReadBack.agreed(read_log(printed(daemon)) for daemon in daemons)

        return Established(
            wire=frozenset({f"ipv4 udp {PORT}"}),
            read_back=read_back,
            programs=daemons,
        )


TUNNEL = OpenVpn()


def _as_openvpn(suite: Suite) -> OpenVpnSuite:
    assert isinstance(suite, OpenVpnSuite)
    return suite


def _has_cipher(cipher: str) -> Feature:
    options = " ".join(f"--{line}" for line in _PROVIDERS)
    check = f'openvpn {options} --show-ciphers | grep --quiet "^$0 "'
    return Feature(f"OpenVPN with {cipher}", ("sh", "-c", check, cipher))


async def _start(
    end: Gateway, role: Role, suite: OpenVpnSuite, authority: Authority, cleanup: AsyncExitStack
) -> Program:
    configuration = "\n".join(_configuration(end, role, suite)).encode()
    credentials = _credentials(authority, authority.issue(end.site.gateway, role))
    await place_files(end.node, DIRECTORY, {"tunnel.conf": configuration + credentials}, cleanup)
    daemon = await start_daemon(end.node, cleanup, "openvpn", "--config", f"{DIRECTORY}/tunnel.conf")
    await daemon.line("link remote", READY_SECONDS)
    return daemon


def _configuration(end: Gateway, role: Role, suite: OpenVpnSuite) -> Iterable[str]:
    own, peer = INNER_ADDRESSES if role == "client" else reversed(INNER_ADDRESSES)
    yield f"tls-{role}"
    yield f"dev {INTERFACE}"
    yield "proto udp4"
    yield f"local {end.site.outside.ipv4.ip}"
    yield f"remote {end.peer.outside.ipv4.ip}"
    yield f"port {PORT}"
    yield f"ifconfig {own.ipv4.ip} {peer.ipv4.ip}"
    yield f"ifconfig-ipv6 {own.ipv6} {peer.ipv6.ip}"
    yield from _PROVIDERS
    yield "disable-dco"
    yield f"data-ciphers {suite.cipher}"
    yield f"data-ciphers-fallback {suite.cipher}"
    if suite.hash:
        yield f"auth {suite.hash}"
    if role == "server":
        yield "dh none"
    yield f"remote-cert-tls {'client' if role == 'server' else 'server'}"
    yield f"verify-x509-name {end.peer.gateway} name"
    yield "tls-exit"
    yield "suppress-timestamps"
    # Says with what ciphers keys are made; what logs every packet begins at 5.
    yield "verb 4"


def _credentials(authority: Authority, identity: Identity) -> bytes:
    return b"\n<ca>\n%b</ca>\n<cert>\n%b</cert>\n<key>\n%b</key>\n" % (
        authority.certificate,
        identity.certificate,
        identity.key,
    )


def read_log(log: str) -> ReadBack:
    """The suite of the newest keys, if the log tells of the same for both directions.

    Where nothing is encrypted there is no line about a cipher, and for an AEAD none about a hash.
    """
    newest: dict[str, list[str]] = {}
    for made in _KEY_MADE.finditer(log):
        direction, cipher, hashed = made.groups()
        if cipher:
            newest[direction] = [cipher]
        elif len(newest.get(direction, [])) == 1:
            newest[direction].append(hashed)
        else:
            newest[direction] = ["none", hashed]
    both_alike = len(newest) == 2 and newest["Outgoing"] == newest["Incoming"]
    name = "-".join(newest["Outgoing"]).lower() if both_alike else None
    lines = [made[0] for made in _KEY_MADE.finditer(log)]
    return ReadBack(name if name in OpenVpn.suites else None, "\n".join(lines))
