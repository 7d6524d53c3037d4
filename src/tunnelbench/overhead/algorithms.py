"""Sizes that formats take from ciphers and integrity checks, by the titles that suites have."""

from __future__ import annotations

import re

_BLOCKS_OF_8 = ("DES", "3DES", "Blowfish", "CAST", "IDEA")
_DIGESTS = {"MD5": 16, "SHA-1": 20, "SHA-256": 32, "SHA-384": 48, "SHA-512": 64, "RIPEMD-160": 20}
_AEAD = re.compile(r"-(GCM|CCM|Poly1305|OCB|GMAC)(?:-(\d+))?$")


def is_cbc(encryption: str) -> bool:
    """Whether it is a block cipher in CBC mode, which needs an IV of a block and whole blocks."""
    return encryption.endswith("-CBC")


def block_bytes(encryption: str) -> int:
    """The size of the blocks that must be filled: 1 for stream ciphers, counter modes and AEADs."""
    if not is_cbc(encryption):
        return 1
    return 8 if encryption.split("-")[0] in _BLOCKS_OF_8 else 16


def tag_bytes(encryption: str) -> int:
    """The tag of an AEAD: 16 bytes unless the title ends with a number of bits; 0 for any other cipher."""
    found = _AEAD.search(encryption)
    return int(found[2] or 128) // 8 if found else 0


def integrity_bytes(integrity: str) -> int:
    """The size of a check value: the title's bits where it is truncated, else the whole digest."""
    if integrity in ("none", "with the cipher"):
        return 0
    name = integrity.removeprefix("HMAC-")
    if name in _DIGESTS:
        return _DIGESTS[name]
    bits = name.rpartition("-")[2]
    if not bits.isdigit():
        raise ValueError(f"the size of the integrity check {integrity!r} is not known")
    return int(bits) // 8
