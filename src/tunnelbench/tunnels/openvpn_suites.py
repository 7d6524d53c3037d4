"""The suites of OpenVPN, and what it calls their parts.

A CBC cipher, or none, goes with a hash of which the whole digest is sent; an AEAD needs none. What OpenSSL 3
calls legacy (Blowfish, CAST5, DES) comes from its legacy provider, which OpenVPN is told to load.
"""

from __future__ import annotations

from dataclasses import dataclass

from tunnelbench.lab.features import Feature
from tunnelbench.tunnels.base import Suite, suites

# Without its legacy provider OpenSSL 3 has neither Blowfish nor DES; OpenVPN 2.5 doesn't know the option.
PROVIDERS = ("ignore-unknown-option providers", "providers legacy default")

_CIPHERS = {
    "AES-128-CBC": "AES-128-CBC",
    "AES-192-CBC": "AES-192-CBC",
    "AES-256-CBC": "AES-256-CBC",
    "BF-CBC": "Blowfish-128-CBC",
    "CAMELLIA-128-CBC": "Camellia-128-CBC",
    "CAMELLIA-192-CBC": "Camellia-192-CBC",
    "CAMELLIA-256-CBC": "Camellia-256-CBC",
    "CAST5-CBC": "CAST-128-CBC",
    "DES-CBC": "DES-CBC",
    "DES-EDE3-CBC": "3DES-CBC",
    "none": "none",
}
_BLOCKS_OF_64_BITS = frozenset({"BF-CBC", "CAST5-CBC", "DES-CBC", "DES-EDE3-CBC"})
_HASHES = {"MD5": "HMAC-MD5", "SHA1": "HMAC-SHA-1", "SHA256": "HMAC-SHA-256", "SHA512": "HMAC-SHA-512"}
_AEADS = {
    "AES-128-GCM": "AES-128-GCM",
    "AES-192-GCM": "AES-192-GCM",
    "AES-256-GCM": "AES-256-GCM",
    "CHACHA20-POLY1305": "ChaCha20-Poly1305",
}


@dataclass(frozen=True)
class OpenVpnSuite(Suite):
    """A suite, and what OpenVPN calls its parts."""

    cipher: str
    """For `data-ciphers`."""
    hash: str | None
    """For `auth`; None for an AEAD, which needs none."""

    @property
    def is_aead(self) -> bool:
        """Whether the cipher authenticates, too."""
        return self.hash is None

    @property
    def has_small_blocks(self) -> bool:
        """Whether its blocks have 64 bits, so that OpenVPN makes new keys every 64 MB by itself."""
        return self.cipher in _BLOCKS_OF_64_BITS


def as_openvpn(suite: Suite) -> OpenVpnSuite:
    """A suite of this VPN as what it is."""
    assert isinstance(suite, OpenVpnSuite)
    return suite


def has_cipher(cipher: str) -> Feature:
    """The ability of the image's OpenVPN to encrypt with a cipher."""
    options = " ".join(f"--{line}" for line in PROVIDERS)
    check = f'openvpn {options} --show-ciphers | grep --quiet "^$0 "'
    return Feature(f"OpenVPN with {cipher}", ("sh", "-c", check, cipher))


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


SUITES = suites(*_all_suites())
"""By name: classic ciphers first, AEADs last."""
