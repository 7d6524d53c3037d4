"""What no implementation of IPsec can do, whoever agrees on its keys."""

from __future__ import annotations

from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import Place, Variant


def refusal_of_transport_mode(variant: Variant, place: Place) -> str | None:
    """Why there can't be transport mode in a place; None where it can, or where nobody asks for it."""
    if variant["mode"] != "transport":
        return None
    if place.topology != "host-to-host":
        return (
            "in transport mode hosts protect their own packets (RFC 4301), so it needs the topology "
            f"host-to-host, not {place.topology}"
        )
    if variant.outer is Family.IPV6:
        return "in transport mode packets keep their own IP version on the wire, so there is none to choose"
    return None


def refusal_of_ike_version(variant: Variant) -> str | None:
    """Why a version of IKE has no name for a suite; None where it has one."""
    if variant["version"] == "ikev1" and variant.suite.name == "chacha20-poly1305":
        return (
            "ChaCha20-Poly1305 has no number in IKEv1 (RFC 7634 gives it one in IKEv2 alone): "
            "add version=ikev2"
        )
    return None
