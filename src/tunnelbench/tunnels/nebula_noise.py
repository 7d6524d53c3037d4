"""Which cipher a Nebula daemon uses, found out by a handshake with it, because it says so nowhere.

Nebula's handshake is the pattern IX of the Noise protocol framework (revision 34). The name of the cipher is
mixed into all keys, and the answer has the daemon's static key encrypted with it. So the cipher under which
the answer can be opened is the one that the daemon has loaded.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
import time
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

CIPHERS = {
    "aes256-gcm": (b"Noise_IX_25519_AESGCM_SHA256", AESGCM),
    "chacha20-poly1305": (b"Noise_IX_25519_ChaChaPoly_SHA256", ChaCha20Poly1305),
}
"""By the name of suites: what Noise calls the whole, and the cipher."""

_HEADER = struct.Struct("!BBHIQ")
"""Version and type, kind of handshake, reserved, the receiver's index of the tunnel, and a counter."""
_VERSION_AND_TYPE = 0x10
_KEY_BYTES = 32
_TAG_BYTES = 16


def _new_key() -> bytes:
    return X25519PrivateKey.generate().private_bytes_raw()


@dataclass(frozen=True)
class Probe:
    """One handshake with a daemon, as someone whom its authority knows."""

    static_key: bytes
    """A raw X25519 private key."""
    certificate: bytes
    """That of the static key, as Nebula puts it on the wire."""
    ephemeral_key: bytes = field(default_factory=_new_key)
    nanoseconds: int = field(default_factory=time.time_ns)
    """A daemon takes a second handshake of someone only if it is later than the first."""

    @property
    def request(self) -> bytes:
        """The first message, as a datagram."""
        return b"".join((_HEADER.pack(_VERSION_AND_TYPE, 0, 0, 0, 1), *self._message))

    @property
    def _message(self) -> tuple[bytes, ...]:
        """Both public keys, and a payload, all of it in the clear."""
        details = (_bytes_field(1, self.certificate), _number_field(2, 1), _number_field(5, self.nanoseconds))
        return (_public(self.ephemeral_key), _public(self.static_key), _bytes_field(1, b"".join(details)))

    def cipher(self, answer: bytes) -> str | None:
        """The suite whose cipher the answering datagram was encrypted with; None where it is none of them."""
        return next((name for name in CIPHERS if self._opens(name, answer[_HEADER.size :])), None)

    def _opens(self, suite: str, message: bytes) -> bool:
        name, cipher = CIPHERS[suite]
        digest = chaining_key = name.ljust(_KEY_BYTES, b"\0")
        theirs, encrypted = message[:_KEY_BYTES], message[_KEY_BYTES : 2 * _KEY_BYTES + _TAG_BYTES]
        if len(encrypted) != _KEY_BYTES + _TAG_BYTES:
            return False
        for part in (b"", *self._message, theirs):
            digest = hashlib.sha256(digest + part).digest()
        key = b""
        for own in (self.ephemeral_key, self.static_key):
            secret = X25519PrivateKey.from_private_bytes(own).exchange(
                X25519PublicKey.from_public_bytes(theirs)
            )
            chaining_key, key = _mix(chaining_key, secret)
        try:
            cipher(key).decrypt(bytes(12), encrypted, digest)
        except InvalidTag:
            return False
        return True


def _public(private_key: bytes) -> bytes:
    return X25519PrivateKey.from_private_bytes(private_key).public_key().public_bytes_raw()


def _mix(chaining_key: bytes, secret: bytes) -> tuple[bytes, bytes]:
    """A new chaining key and a key for the cipher (RFC 5869 with two blocks)."""
    extracted = hmac.digest(chaining_key, secret, "sha256")
    first = hmac.digest(extracted, b"\x01", "sha256")
    return first, hmac.digest(extracted, first + b"\x02", "sha256")


def _bytes_field(number: int, data: bytes) -> bytes:
    """A field as Protocol Buffers write it."""
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _number_field(number: int, value: int) -> bytes:
    return bytes([number << 3]) + _varint(value)


def _varint(value: int) -> bytes:
    more = bytearray()
    while value > 0x7F:
        more.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*more, value])
