"""What openconnect and ocserv say of a session: ciphers as GnuTLS writes them, and compression."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from tunnelbench.tunnels.base import ReadBack

_SUITES = {
    "(AES-128-GCM)": "aes128-gcm",
    "(AES-256-GCM)": "aes256-gcm",
    "(CHACHA20-POLY1305)": "chacha20-poly1305",
    "(AES-128-CCM)": "aes128-ccm",
    "(AES-256-CCM)": "aes256-ccm",
    "(AES-128-CBC)-(SHA1)": "aes128-sha1",
    "(AES-256-CBC)-(SHA1)": "aes256-sha1",
    "(AES-128-CBC)-(SHA256)": "aes128-sha256",
    "(AES-256-CBC)-(SHA384)": "aes256-sha384",
    "(CAMELLIA-128-CBC)-(SHA256)": "camellia128-sha256",
    "(3DES-CBC)-(SHA1)": "3des-sha1",
    "(NULL)-(SHA1)": "null-sha1",
}
_COMPRESSIONS = {"oc-lz4": "lz4", None: "none"}
_LOGGED_IN = "Got CONNECT response"
_CLIENT_CIPHER = {
    "dtls": re.compile(r"Established DTLS connection .*Ciphersuite (\S+)\."),
    "tls": re.compile(r"Connected to HTTPS on .* with ciphersuite (\S+)"),
}
_CLIENT_COMPRESSION = {
    "dtls": re.compile(r"X-DTLS-Content-Encoding: (\S+)"),
    "tls": re.compile(r"X-CSTP-Content-Encoding: (\S+)"),
}
_SERVER_CIPHER = {"dtls": "DTLS cipher", "tls": "TLS ciphersuite"}
_SERVER_COMPRESSION = {"dtls": "DTLS", "tls": "CSTP"}
_SERVER_CIPHER_CHARACTERS = 63
"""What is longer, ocserv cuts."""


def read_log(log: str) -> ReadBack:
    """What the client's log says of its newest connection."""
    before, _, newest = log.rpartition(_LOGGED_IN)
    in_use = "dtls" if _CLIENT_CIPHER["dtls"].search(newest) else "tls"
    # TLS comes first, DTLS after the log-in.
    ciphers = list(_CLIENT_CIPHER[in_use].finditer(newest if in_use == "dtls" else before))
    compression = _CLIENT_COMPRESSION[in_use].search(newest)
    if not ciphers:
        return ReadBack(None, "")
    said = [ciphers[-1][0], *([compression[0]] if compression else [])]
    return ReadBack(
        suite_of(ciphers[-1][1]),
        "\n".join(said),
        {"carrier": in_use, "compression": _compression(compression[1] if compression else None)},
    )


def read_sessions(text: str, log: str) -> ReadBack:
    """What ocserv says of all clients that are logged in: in JSON (`occtl show users`), and in its log."""
    try:
        sessions = msgspec.json.decode(text, type=list[dict[str, Any]])
    except msgspec.DecodeError:
        return ReadBack(None, text.strip())
    return ReadBack.agreed(_session(session, log) for session in sessions) if sessions else ReadBack(None, "")


def _session(session: dict[str, Any], log: str) -> ReadBack:
    user, in_use = str(session.get("Username")), "dtls" if session.get(_SERVER_CIPHER["dtls"]) else "tls"
    cipher = str(session.get(_SERVER_CIPHER[in_use]))
    # Without DTLS it is the log alone that tells of compression.
    selected = (
        rf"worker\[{re.escape(user)}\].* selected {_SERVER_COMPRESSION[in_use]} compression method (\S+)"
    )
    compressions = re.findall(selected, log)
    compression = _compression(compressions[-1] if compressions else None)
    said = f"{user}: {_SERVER_CIPHER[in_use]} {cipher}, compression {compression}"
    return ReadBack(suite_of(cipher), said, {"carrier": in_use, "compression": compression})


def suite_of(ciphersuite: str) -> str | None:
    """The suite of what GnuTLS calls a cipher suite: version, key exchange, signature, cipher and hash.

    What was cut is taken for the only suite that it can be the beginning of.
    """
    whole = [name for end, name in _SUITES.items() if ciphersuite.endswith(f"-{end}")]
    if whole or len(ciphersuite) != _SERVER_CIPHER_CHARACTERS:
        return whole[0] if whole else None
    begun = [ciphersuite[found.start() + 1 :] for found in re.finditer(r"-\(", ciphersuite)]
    possible = [name for end, name in _SUITES.items() if any(end.startswith(part) for part in begun)]
    return possible[0] if len(possible) == 1 else None


def _compression(name: str | None) -> str:
    return _COMPRESSIONS.get(name, str(name))
