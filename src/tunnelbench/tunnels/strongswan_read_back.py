"""What strongSwan says of the associations in use: the suite, and what else it agreed on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from tunnelbench.tunnels import xfrm
from tunnelbench.tunnels.base import ReadBack
from tunnelbench.tunnels.ipsec_suites import ESP_SUITES, Algorithm, as_esp
from tunnelbench.tunnels.strongswan_associations import ChildAssociation, IkeAssociation, installed
from tunnelbench.tunnels.strongswan_daemon import Charon, Protected

_CIPHERS_WITHOUT_LENGTH = {
    "DES-CBC": "DES_CBC",
    "3DES-CBC": "3DES_CBC",
    "none": "NULL",
    "ChaCha20-Poly1305": "CHACHA20_POLY1305",
}
_HASHES = {"MD5": "MD5", "SHA-1": "SHA1", "SHA-256": "SHA2_256", "SHA-384": "SHA2_384", "SHA-512": "SHA2_512"}


async def read_back(protected: Protected) -> ReadBack:
    """What both daemons say, and both kernels where they encrypt."""
    protection = protected.protection
    expected = len(protection.children)
    ends = [read_end(end, expected, in_kernel=protection.data_plane == "kernel") for end in protected.ends]
    return ReadBack.agreed(await asyncio.gather(*ends))


async def read_end(end: Charon, expected: int, *, in_kernel: bool) -> ReadBack:
    """What one daemon says of so many pairs of associations, and its kernel if that encrypts."""
    text, associations = await end.associations()
    said = in_use(text, associations, expected)
    if not in_kernel:
        return said
    shown = at_kernel((await end.node.run("ip", "xfrm", "state", "list")).text, associations)
    return ReadBack(
        said.suite if said.suite == shown.suite else None,
        f"{said.text}\n{shown.text}",
        {name: value for name, value in said.facts.items() if shown.facts.get(name, value) == value},
    )


def in_use(text: str, associations: Sequence[IkeAssociation], expected: int) -> ReadBack:
    """What all pairs of associations have in common, charon says, if they are as many as expected."""
    readings = [
        ReadBack(_suite(child), "", {**_facts_of_exchange(parent), **_facts(child)})
        for parent in associations
        for child in installed([parent])
    ]
    return _common(text, readings if len(readings) == expected else [])


def at_kernel(state: str, associations: Sequence[IkeAssociation]) -> ReadBack:
    """What the kernel's associations (ip-xfrm(8)) with the same indices as charon's have in common."""
    readings = [
        xfrm.read_state(xfrm.with_indices(state, _indices(child))) for child in installed(associations)
    ]
    return _common("\n".join(one.text for one in readings), readings)


def _common(text: str, readings: Iterable[ReadBack]) -> ReadBack:
    all_readings = list(readings)
    if not all_readings:
        return ReadBack(None, text)
    agreed = ReadBack.agreed(all_readings)
    return ReadBack(agreed.suite, text.strip(), agreed.facts)


def _indices(child: ChildAssociation) -> frozenset[int]:
    words = (child.words.get(name) for name in ("spi-in", "spi-out", "cpi-in", "cpi-out"))
    return frozenset(int(word, 16) for word in words if word)


def _facts_of_exchange(association: IkeAssociation) -> Mapping[str, str]:
    words = association.words
    return {
        "IKE version": f"ikev{words.get('version')}",
        "DH group": words.get("dh-group", "").lower().replace("_", ""),
    }


def _facts(child: ChildAssociation) -> Mapping[str, str]:
    """By the names that the kernel's facts have."""
    words = child.words
    return {
        "protocol": words["protocol"].lower(),
        "mode": words["mode"].lower(),
        "compression": "deflate" if "cpi-in" in words else "none",
        "NAT traversal": words.get("encap", "no"),
    }


def _suite(child: ChildAssociation) -> str | None:
    words = child.words
    cipher = (words.get("encr-alg", "NULL"), words.get("encr-keysize", ""))
    for name, suite in ESP_SUITES.items():
        esp = as_esp(suite)
        if cipher == _cipher(esp.cipher) and words.get("integ-alg") == _hash(esp.hashed):
            return name
    return None


def _cipher(algorithm: Algorithm) -> tuple[str, str]:
    """Its name in strongSwan, and the length of its key where strongSwan says it."""
    if algorithm.title in _CIPHERS_WITHOUT_LENGTH:
        return (_CIPHERS_WITHOUT_LENGTH[algorithm.title], "")
    name, length, mode = algorithm.title.split("-")
    # The length of the check value, in bytes, which these ciphers could have shorter.
    check = "_16" if mode in ("GCM", "CCM") else ""
    return (f"{name.upper()}_{mode}{check}", length)


def _hash(algorithm: Algorithm | None) -> str | None:
    if algorithm is None or not algorithm.kernel_name:
        return None
    title = algorithm.title.removeprefix("HMAC-")
    name = next(name for name in reversed(_HASHES) if title.startswith(name))
    length = title.removeprefix(name)
    return f"HMAC_{_HASHES[name]}{length.replace('-', '_')}"
