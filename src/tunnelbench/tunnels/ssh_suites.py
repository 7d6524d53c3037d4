"""The suites and options of SSH, what each makes both ends agree on, and who can still do it.

Ciphers are those of RFC 4253, RFC 4344 (CTR) and OpenSSH's own AEADs; MACs those of RFC 4253 and RFC 6668.
OpenSSH carries what it has. Blowfish, CAST-128 and RC4 went from its server with release 7.6; there AsyncSSH
is the server and `ssh1`, Debian's OpenSSH 7.5 which speaks SSH 2 too, the client.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from tunnelbench.tunnels.base import Option, Suite, Variant

COMPRESSION = Option(
    "compression", ("none", "zlib"), "What the SSH connection is compressed with (zlib@openssh.com)."
)
MAC_ORDER = Option(
    "mac-order",
    ("encrypt-and-mac", "encrypt-then-mac"),
    "Whether the MAC is over the plaintext (RFC 4253) or the ciphertext (OpenSSH's -etm MACs).",
)

_CIPHERS = {
    "aes128-cbc": "AES-128-CBC",
    "aes192-cbc": "AES-192-CBC",
    "aes256-cbc": "AES-256-CBC",
    "3des-cbc": "3DES-CBC",
    "blowfish-cbc": "Blowfish-128-CBC",
    "cast128-cbc": "CAST-128-CBC",
    "arcfour": "RC4-128",
    "aes128-ctr": "AES-128-CTR",
    "aes192-ctr": "AES-192-CTR",
    "aes256-ctr": "AES-256-CTR",
}
_LEGACY = frozenset({"blowfish-cbc", "cast128-cbc", "arcfour"})
_MACS = {
    "md5": ("hmac-md5", "HMAC-MD5"),
    "sha1": ("hmac-sha1", "HMAC-SHA-1"),
    "sha256": ("hmac-sha2-256", "HMAC-SHA-256"),
    "sha512": ("hmac-sha2-512", "HMAC-SHA-512"),
}
_AEADS = {
    "aes128-gcm": "AES-128-GCM",
    "aes256-gcm": "AES-256-GCM",
    "chacha20-poly1305": "ChaCha20-Poly1305",
}
_THEN_MAC = "-etm@openssh.com"
_IMPLICIT = "<implicit>"
"""What OpenSSH calls the MAC of an AEAD."""


@dataclass(frozen=True)
class SshSuite(Suite):
    """A suite, and what SSH calls its parts."""

    cipher: str
    mac: str | None
    """None for an AEAD, which needs none."""

    @property
    def is_legacy(self) -> bool:
        """Whether OpenSSH's server no longer has it, so that AsyncSSH is the server."""
        return self.cipher in _LEGACY


@dataclass(frozen=True)
class Terms:
    """What both ends accept and nothing else, as SSH calls it."""

    cipher: str
    mac: str | None
    compression: str

    @property
    def options(self) -> tuple[str, ...]:
        """For OpenSSH, client or server (ssh_config(5), sshd_config(5))."""
        return (
            f"Ciphers {self.cipher}",
            *([f"MACs {self.mac}"] if self.mac else []),
            f"Compression {'no' if self.compression == 'none' else 'yes'}",
        )

    @property
    def facts(self) -> Mapping[str, str]:
        """What must be found beside the suite when it is read back."""
        return {"MAC": self.mac or _IMPLICIT, "compression": self.compression}


def all_suites() -> list[SshSuite]:
    """Every suite, whoever carries it."""
    classic = [
        SshSuite(f"{cipher}-{name}", encryption, integrity, cipher, mac)
        for cipher, encryption in _CIPHERS.items()
        for name, (mac, integrity) in _MACS.items()
    ]
    combined = [
        SshSuite(name, encryption, "with the cipher", f"{name}@openssh.com", None)
        for name, encryption in _AEADS.items()
    ]
    return classic + combined


def suite_of(variant: Variant) -> SshSuite:
    """The suite of a variant of ours."""
    return cast(SshSuite, variant.suite)


def encrypts_then_macs(variant: Variant) -> bool:
    """Whether the MAC is over the ciphertext; an AEAD's tag does not count."""
    return variant[MAC_ORDER.name] == "encrypt-then-mac"


def terms(variant: Variant) -> Terms:
    """What both ends must agree on for a variant."""
    suite = suite_of(variant)
    mac = f"{suite.mac}{_THEN_MAC}" if suite.mac and encrypts_then_macs(variant) else suite.mac
    compression = "none" if variant[COMPRESSION.name] == "none" else "zlib@openssh.com"
    return Terms(suite.cipher, mac, compression)


def suite_named(cipher: str, mac: str) -> str | None:
    """The suite that a cipher and a MAC are, as programs name them; None where it is none of ours."""
    plain = None if mac == _IMPLICIT else mac.removesuffix(_THEN_MAC)
    return next((suite.name for suite in all_suites() if (suite.cipher, suite.mac) == (cipher, plain)), None)


def impossible(variant: Variant) -> str | None:
    """Why a suite and options don't go together; None where they do."""
    suite = suite_of(variant)
    if suite.mac is None and encrypts_then_macs(variant):
        return f"{suite.encryption} authenticates by itself, so there is no MAC whose order could be chosen"
    return None
