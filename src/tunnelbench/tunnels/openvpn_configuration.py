"""OpenVPN's configuration for a variant, line by line, and the files that hold it with its keys."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from tunnelbench.lab.topology import Addresses, Family
from tunnelbench.tunnels.base import Gateway, Variant
from tunnelbench.tunnels.certificates import Authority, Identity, Role
from tunnelbench.tunnels.openvpn_suites import PROVIDERS, as_openvpn
from tunnelbench.tunnels.point_to_point import INNER_ADDRESSES

DIRECTORY = "/run/openvpn"
FILE = "tunnel.conf"
CLIENTS = "clients"
"""The directory with a file for each client."""
PORT = 1194
RENEGOTIATION_BYTES = 64 << 20
"""How much new keys are made for where that goes by volume; OpenVPN's own choice for blocks of 64 bits."""

_COMPRESSION = {"lzo": "lzo", "lz4": "lz4-v2"}


def device(variant: Variant) -> str:
    """The name of the network interface on both gateways."""
    return f"{variant['device']}0"


def between_gateways(end: Gateway, role: Role, variant: Variant) -> Iterator[str]:
    """The lines for one of two gateways that are each other's only peer; keys are not among them."""
    own, peer = INNER_ADDRESSES if role == "client" else reversed(INNER_ADDRESSES)
    yield from _for_all(end, role, variant)
    if role == "server" or variant["carrier"] == "udp":
        yield f"local {end.outside}"
        yield f"port {PORT}"
    else:
        yield from _any_own_port()
    yield f"remote {end.peer_outside}"
    if variant["device"] == "tap":
        yield f"ifconfig {own.ipv4.ip} {own.ipv4.netmask}"
    else:
        yield f"ifconfig {own.ipv4.ip} {peer.ipv4.ip}"
    yield f"ifconfig-ipv6 {own.ipv6} {peer.ipv6.ip}"
    if variant["keying"] == "static":
        yield from _static_keying(role, variant)
    else:
        yield from _tls_keying(role, variant)
        yield f"verify-x509-name {end.peer.gateway} name"
        yield "tls-exit"


def for_server(end: Gateway, variant: Variant) -> Iterator[str]:
    """The lines for the gateway that clients connect to; its certificate is not among them."""
    inside = server_inside(end)
    yield from _for_all(end, "server", variant)
    yield from _tls_keying("server", variant)
    yield f"local {end.outside}"
    yield f"port {PORT}"
    yield "mode server"
    yield "topology subnet"
    yield 'push "topology subnet"'
    yield f"ifconfig {inside.ipv4.ip} {inside.ipv4.netmask}"
    yield f"ifconfig-ipv6 {inside.ipv6} {end.peer.inside.ipv6.ip}"
    yield f"client-config-dir {CLIENTS}"
    yield "ccd-exclusive"


def address_of_client(client: Gateway) -> Iterator[str]:
    """The lines by which the server gives a client its inside address."""
    inside = client.site.inside
    yield f"ifconfig-push {inside.ipv4.ip} {inside.ipv4.netmask}"
    yield f"ifconfig-ipv6-push {inside.ipv6} {inside.ipv6.network[1]}"


def for_client(end: Gateway, variant: Variant) -> Iterator[str]:
    """The lines for one of several clients; its certificate is not among them."""
    yield from _for_all(end, "client", variant)
    yield from _tls_keying("client", variant)
    yield from _any_own_port()
    yield f"remote {end.peer_outside}"
    yield f"verify-x509-name {end.peer.gateway} name"
    yield "pull"
    yield "tls-exit"


def server_inside(server: Gateway) -> Addresses:
    """The server's address in its clients' network: the first."""
    ipv4, ipv6 = server.peer.inside.ipv4.network, server.peer.inside.ipv6.network
    return Addresses.parse(f"{ipv4[1]}/{ipv4.prefixlen}", f"{ipv6[1]}/{ipv6.prefixlen}")


def certificates(authority: Authority, identity: Identity) -> bytes:
    """The end of a configuration with its certificate."""
    return b"\n<ca>\n%b</ca>\n<cert>\n%b</cert>\n<key>\n%b</key>\n" % (
        authority.certificate,
        identity.certificate,
        identity.key,
    )


def static_key() -> bytes:
    """The end of a configuration with a new static key of 2048 bits, which both ends share."""
    key = secrets.token_hex(256)
    lines = "\n".join(key[start : start + 32] for start in range(0, len(key), 32))
    name = "OpenVPN Static key V1"
    return f"\n<secret>\n-----BEGIN {name}-----\n{lines}\n-----END {name}-----\n</secret>\n".encode()


def _for_all(end: Gateway, role: Role, variant: Variant) -> Iterator[str]:
    yield f"dev {device(variant)}"
    yield f"proto {_protocol(end, role, variant)}"
    yield from PROVIDERS
    yield from _offload(variant)
    if variant["compression"] != "none":
        yield "allow-compression yes"
        yield f"compress {_COMPRESSION[variant['compression']]}"
    yield "machine-readable-output"
    # Says with what ciphers keys are made; what logs every packet begins at 5.
    yield "verb 4"


def _any_own_port() -> Iterator[str]:
    # A TCP connection that is closed keeps its ports for a while, so each gets a new one.
    yield "nobind"
    yield f"rport {PORT}"
    yield "connect-retry 1"


def _protocol(end: Gateway, role: Role, variant: Variant) -> str:
    number = "6" if end.outer is Family.IPV6 else "4"
    return f"udp{number}" if variant["carrier"] == "udp" else f"tcp{number}-{role}"


def _offload(variant: Variant) -> Iterator[str]:
    # OpenVPN 2.5 has neither offload nor the option.
    if variant["offload"] == "no":
        yield "ignore-unknown-option disable-dco"
        yield "disable-dco"


def _tls_keying(role: Role, variant: Variant) -> Iterator[str]:
    suite = as_openvpn(variant.suite)
    yield f"tls-{role}"
    yield f"data-ciphers {suite.cipher}"
    yield f"data-ciphers-fallback {suite.cipher}"
    if suite.hash:
        yield f"auth {suite.hash}"
    if role == "server":
        yield "dh none"
    yield f"remote-cert-tls {'client' if role == 'server' else 'server'}"
    if variant["renegotiation"] == "by-volume":
        yield f"reneg-bytes {RENEGOTIATION_BYTES}"


def _static_keying(role: Role, variant: Variant) -> Iterator[str]:
    suite = as_openvpn(variant.suite)
    # From 2.7 on it must be asked for in so many words.
    yield "ignore-unknown-option allow-deprecated-insecure-static-crypto"
    yield "allow-deprecated-insecure-static-crypto"
    yield f"cipher {suite.cipher}"
    yield f"auth {suite.hash}"
    # Each direction has its own part of the key.
    yield f"key-direction {0 if role == 'server' else 1}"
