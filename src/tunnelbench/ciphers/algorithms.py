"""Ciphers and integrity checks by the titles that suites have, and what the kernel and OpenSSL call them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

KernelKind = Literal["skcipher", "aead", "hash"]


@dataclass(frozen=True)
class Algorithm:
    """Something to time."""

    title: str
    kernel_kind: KernelKind
    kernel_name: str | None
    """For an AF_ALG socket; None where the kernel has it in no form that a program can ask for."""
    key_bytes: int = 0
    iv: bytes = b""
    openssl: str | None = None
    """What OpenSSL's `speed` calls it; None where OpenSSL has it not."""
    is_legacy: bool = False
    """Whether OpenSSL 3 has it in its legacy provider."""


def cipher(title: str) -> Algorithm | None:
    """The cipher of a suite; None for no encryption. Raises ValueError for one that can't be timed."""
    if title == "none":
        return None
    found = _CIPHERS.get(title)
    if found is None:
        raise ValueError(f"neither the kernel nor OpenSSL can time {title} alone")
    return found


def integrity(title: str) -> Algorithm | None:
    """The integrity check; None where there is none of its own. Raises ValueError like `cipher`.

    How much of the check value is sent does not matter.
    """
    if title in ("none", "with the cipher"):
        return None
    found = _HASHES.get(re.sub(r"-\d+$", "", title)) or _HASHES.get(title)
    if found is None:
        raise ValueError(f"neither the kernel nor OpenSSL can time {title} alone")
    return found


def _block(title: str, kernel: str, key: int, block: int, openssl: str | None, legacy: bool) -> Algorithm:
    return Algorithm(title, "skcipher", f"cbc({kernel})", key, bytes(block), openssl, legacy)


def _ciphers() -> Mapping[str, Algorithm]:
    found = [
        _block("DES-CBC", "des", 8, 8, "des-cbc", True),
        _block("3DES-CBC", "des3_ede", 24, 8, "des-ede3-cbc", False),
        _block("Blowfish-128-CBC", "blowfish", 16, 8, "bf-cbc", True),
        _block("CAST-128-CBC", "cast5", 16, 8, "cast5-cbc", True),
        Algorithm(
            "ChaCha20-Poly1305", "aead", "rfc7539(chacha20,poly1305)", 32, bytes(12), "chacha20-poly1305"
        ),
        Algorithm("RC4-40", "skcipher", "ecb(arc4)", 5, b"", "rc4-40", True),
        Algorithm("RC4-128", "skcipher", "ecb(arc4)", 16, b"", "rc4", True),
    ]
    for bits in (128, 192, 256):
        key = bits // 8
        found += [
            _block(f"AES-{bits}-CBC", "aes", key, 16, f"aes-{bits}-cbc", False),
            Algorithm(f"AES-{bits}-CTR", "skcipher", "ctr(aes)", key, bytes(16), f"aes-{bits}-ctr"),
            Algorithm(f"AES-{bits}-GCM", "aead", "gcm(aes)", key, bytes(12), f"aes-{bits}-gcm"),
            # The first byte of its IV says how long the counter is (RFC 3610).
            Algorithm(f"AES-{bits}-CCM", "aead", "ccm(aes)", key, b"\x03" + bytes(15), f"aes-{bits}-ccm"),
            _block(f"Camellia-{bits}-CBC", "camellia", key, 16, f"camellia-{bits}-cbc", False),
            _block(f"Twofish-{bits}-CBC", "twofish", key, 16, None, False),
            _block(f"Serpent-{bits}-CBC", "serpent", key, 16, None, False),
        ]
    return {algorithm.title: algorithm for algorithm in found}


_CIPHERS = _ciphers()
_HASHES: Mapping[str, Algorithm] = {
    f"HMAC-{title}": Algorithm(f"HMAC-{title}", "hash", f"hmac({name})", size, b"", name)
    for title, name, size in (
        ("MD5", "md5", 16),
        ("SHA-1", "sha1", 20),
        ("SHA-256", "sha256", 32),
        ("SHA-384", "sha384", 48),
        ("SHA-512", "sha512", 64),
    )
}
