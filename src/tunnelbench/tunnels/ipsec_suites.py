"""The transforms of IPsec, and the suites made of them: for all VPNs that protect packets with ESP or AH.

Ciphers: RFC 2405 (DES), RFC 2451 (3DES, Blowfish, CAST-128, Twofish, Serpent), RFC 3602 (AES-CBC), RFC 3686
(AES-CTR), RFC 4312 (Camellia), RFC 2410 (null). Hashes: RFC 2403 (MD5), RFC 2404 (SHA-1), RFC 4868 (SHA-2).
Both in one: RFC 4106 (AES-GCM), RFC 4309 (AES-CCM), RFC 7634 (ChaCha20-Poly1305).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from tunnelbench.tunnels.base import Suite, suites


@dataclass(frozen=True)
class Algorithm:
    """A transform: what it is called by those who run it, and what it adds to a packet."""

    kernel_name: str
    """As the kernel's crypto API names it; empty for no transform at all."""
    title: str
    key_bits: int
    """The key, with the salt or nonce that belongs to it."""
    icv_bits: int = 0
    """The integrity check value that ends a packet."""
    block_bytes: int = 1
    """What is encrypted is padded to a multiple of this; ESP asks for 4 at least."""
    iv_bytes: int = 0
    """The initialization vector in each packet."""
    strongswan: str | None = None
    """Its word in strongSwan's proposals; None where it has none."""
    libreswan: str | None = None
    """Its word in libreswan's proposals; None where it has none."""


CIPHERS: Mapping[str, Algorithm] = {
    "des": Algorithm("cbc(des)", "DES-CBC", 64, 0, 8, 8, "des"),
    "3des": Algorithm("cbc(des3_ede)", "3DES-CBC", 192, 0, 8, 8, "3des", "3des"),
    "blowfish": Algorithm("cbc(blowfish)", "Blowfish-128-CBC", 128, 0, 8, 8, "blowfish128"),
    "cast128": Algorithm("cbc(cast5)", "CAST-128-CBC", 128, 0, 8, 8, "cast128"),
    **{
        f"aes{bits}": Algorithm("cbc(aes)", f"AES-{bits}-CBC", bits, 0, 16, 16, f"aes{bits}", f"aes{bits}")
        for bits in (128, 192, 256)
    },
    **{
        f"aes{bits}-ctr": Algorithm(
            "rfc3686(ctr(aes))", f"AES-{bits}-CTR", bits + 32, 0, 1, 8, f"aes{bits}ctr", f"aes_ctr{bits}"
        )
        for bits in (128, 192, 256)
    },
    **{
        f"camellia{bits}": Algorithm(
            "cbc(camellia)", f"Camellia-{bits}-CBC", bits, 0, 16, 16, f"camellia{bits}", f"camellia{bits}"
        )
        for bits in (128, 192, 256)
    },
    **{
        f"{name}{bits}": Algorithm(
            f"cbc({name})", f"{name.title()}-{bits}-CBC", bits, 0, 16, 16, f"{name}{bits}"
        )
        for name in ("twofish", "serpent")
        for bits in (128, 256)
    },
    "null": Algorithm("ecb(cipher_null)", "none", 0, strongswan="null", libreswan="null"),
}
"""By the first part of a suite's name."""

HASHES: Mapping[str, Algorithm] = {
    "md5": Algorithm("hmac(md5)", "HMAC-MD5-96", 128, 96, strongswan="md5", libreswan="md5"),
    "sha1": Algorithm("hmac(sha1)", "HMAC-SHA-1-96", 160, 96, strongswan="sha1", libreswan="sha1"),
    **{
        f"sha{bits}": Algorithm(
            f"hmac(sha{bits})",
            f"HMAC-SHA-{bits}-{bits // 2}",
            bits,
            bits // 2,
            strongswan=f"sha{bits}",
            libreswan=f"sha2_{bits}",
        )
        for bits in (256, 384, 512)
    },
    "none": Algorithm("", "none", 0),
}
"""By the last part of a suite's name."""

AEADS: Mapping[str, Algorithm] = {
    **{
        f"aes{bits}-gcm": Algorithm(
            "rfc4106(gcm(aes))",
            f"AES-{bits}-GCM",
            bits + 32,
            *(128, 1, 8),
            f"aes{bits}gcm16",
            f"aes_gcm{bits}",
        )
        for bits in (128, 192, 256)
    },
    **{
        f"aes{bits}-ccm": Algorithm(
            "rfc4309(ccm(aes))",
            f"AES-{bits}-CCM",
            bits + 24,
            *(128, 1, 8),
            f"aes{bits}ccm16",
            f"aes_ccm{bits}",
        )
        for bits in (128, 256)
    },
    "chacha20-poly1305": Algorithm(
        "rfc7539esp(chacha20,poly1305)",
        "ChaCha20-Poly1305",
        256 + 32,
        *(128, 1, 8),
        "chacha20poly1305",
        "chacha20_poly1305",
    ),
}
"""Ciphers that also authenticate, by a suite's name."""


@dataclass(frozen=True)
class EspSuite(Suite):
    """A suite and its transforms: a cipher and a hash, or one AEAD."""

    cipher: Algorithm
    """The cipher, or the AEAD."""
    hashed: Algorithm | None
    """The hash; None with an AEAD."""

    @property
    def algorithms(self) -> Mapping[str, Algorithm]:
        """By the word that ip-xfrm(8) has for them: `enc` and `auth-trunc`, or `aead`."""
        if self.hashed is None:
            return {"aead": self.cipher}
        if not self.hashed.kernel_name:
            return {"enc": self.cipher}
        return {"enc": self.cipher, "auth-trunc": self.hashed}

    @property
    def icv_bits(self) -> int:
        """The length of the integrity check value."""
        return (self.hashed or self.cipher).icv_bits

    @property
    def strongswan(self) -> str | None:
        """What proposes it for ESP to strongSwan; None where strongSwan can't."""
        return self._proposal(lambda algorithm: algorithm.strongswan)

    @property
    def libreswan(self) -> str | None:
        """What proposes it for ESP to libreswan; None where libreswan can't."""
        return self._proposal(lambda algorithm: algorithm.libreswan)

    def _proposal(self, word: Callable[[Algorithm], str | None]) -> str | None:
        words = [word(algorithm) for algorithm in self.algorithms.values()]
        return None if None in words else "-".join(filter(None, words))


def _all_suites() -> Iterator[EspSuite]:
    for cipher_name, cipher in CIPHERS.items():
        for hash_name in _hashes_for(cipher_name):
            hashed = HASHES[hash_name]
            yield EspSuite(f"{cipher_name}-{hash_name}", cipher.title, hashed.title, cipher, hashed)
    for name, aead in AEADS.items():
        yield EspSuite(name, aead.title, "with the cipher", aead, None)


def _hashes_for(cipher_name: str) -> tuple[str, ...]:
    """Not every product makes sense: long hashes belong to AES, and some ciphers must not go without one.

    Forbidden are a counter mode without integrity check (RFC 3686), and ESP that does nothing (RFC 4303).
    """
    usual = ("md5", "sha1", "sha256")
    if cipher_name == "null":
        return (*usual, "sha384", "sha512")
    if not cipher_name.startswith("aes"):
        return (*usual, "none")
    return (
        (*usual, "sha384", "sha512") if cipher_name.endswith("-ctr") else (*usual, "sha384", "sha512", "none")
    )


ESP_SUITES: Mapping[str, Suite] = suites(*_all_suites())
"""All suites by name, old ciphers first, AEADs last; each is an `EspSuite`."""


def as_esp(suite: Suite) -> EspSuite:
    """A suite of this module with its transforms."""
    assert isinstance(suite, EspSuite)
    return suite
