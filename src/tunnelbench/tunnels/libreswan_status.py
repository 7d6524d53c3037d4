"""What libreswan says of its security associations: `whack --status`, parsed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tunnelbench.tunnels import xfrm
from tunnelbench.tunnels.base import ReadBack
from tunnelbench.tunnels.ipsec_suites import ESP_SUITES, as_esp

# Version 5 no longer begins lines with 000.
_NEWEST = re.compile(
    r'^(?:000 )?"(\w+)": .*(?:newest (?:IPsec|Child)|established (?:IPsec|Child)) SA: #(\d+);', re.MULTILINE
)
_INDICES = re.compile(r'^(?:000 )?#(\d+): "(\w+)" esp[.:]([0-9a-f]+)@\S+ esp[.:]([0-9a-f]+)@', re.MULTILINE)
_PACKETS = re.compile(r'^(?:000 )?"(\w+)": +ESP algorithm newest: (\S+);.*', re.MULTILINE)
_EXCHANGE = re.compile(r'^(?:000 )?"\w+": +IKE(v[12]) algorithm newest: \S+-(\w+)$', re.MULTILINE)

_GROUPS = {"DH19": "ecp256", "DH20": "ecp384", "DH21": "ecp521", "DH31": "curve25519"}
_HASHES = {"sha1": "HMAC_SHA1_96", "md5": "HMAC_MD5_96"} | {
    f"sha2_{bits}": f"HMAC_SHA2_{bits}_{bits // 2}" for bits in (256, 384, 512)
}


def all_indices(status: str) -> frozenset[frozenset[int]]:
    """The security parameter indices of all pairs, with those of pairs that were replaced."""
    return frozenset(frozenset({int(one, 16), int(other, 16)}) for *_, one, other in _INDICES.findall(status))


def indices(status: str) -> Mapping[str, frozenset[int]]:
    """The security parameter indices in use, of both directions, by connection."""
    newest = set(_NEWEST.findall(status))
    return {
        connection: frozenset({int(one, 16), int(other, 16)})
        for number, connection, one, other in _INDICES.findall(status)
        if (connection, number) in newest
    }


def read_status(status: str, state: str, connections: Iterable[str]) -> ReadBack:
    """The suite and the facts of all connections, where pluto and the kernel agree on them.

    `state` is what ip-xfrm(8) shows of the kernel's associations.
    """
    expected = sorted(connections)
    in_use = indices(status)
    said = [(connection, _suite(algorithms)) for connection, algorithms in _PACKETS.findall(status)]
    exchanges: set[tuple[str, str]] = set(_EXCHANGE.findall(status))
    shown = [xfrm.read_state(xfrm.with_indices(state, pair)) for pair in in_use.values()]
    lines = [match[0] for pattern in (_EXCHANGE, _PACKETS) for match in pattern.finditer(status)]
    text = "\n".join([*lines, *(one.text for one in shown)])
    if sorted(in_use) != expected or sorted(connection for connection, _ in said) != expected:
        return ReadBack(None, text or status)
    agreed = ReadBack.agreed(shown)
    suites = {agreed.suite, *(suite for _, suite in said)}
    facts: dict[str, str] = dict(agreed.facts)
    if len(exchanges) == 1:
        version, group = exchanges.pop()
        facts |= {"IKE version": f"ike{version}", "DH group": _GROUPS.get(group, group.lower())}
    return ReadBack(suites.pop() if len(suites) == 1 else None, text, facts)


def _suite(algorithms: str) -> str | None:
    """From pluto's words, such as `AES_CBC_128-HMAC_SHA1_96`; version 4 gives even no cipher a key length."""
    algorithms = algorithms.replace("NULL_000-", "NULL-")
    for name, suite in ESP_SUITES.items():
        esp = as_esp(suite)
        hashed = "NONE" if esp.hashed is None else _HASHES.get(esp.hashed.libreswan or "")
        if algorithms == f"{_cipher(esp.cipher.title)}-{hashed}":
            return name
    return None


def _cipher(title: str) -> str:
    if title == "none":
        return "NULL"
    if title == "3DES-CBC":
        return "3DES_CBC_192"
    if title == "ChaCha20-Poly1305":
        return "CHACHA20_POLY1305_256"
    name, length, mode = [*title.split("-"), "", ""][:3]
    check = "_16" if mode in ("GCM", "CCM") else ""
    return f"{name.upper()}_{mode}{check}_{length}"
