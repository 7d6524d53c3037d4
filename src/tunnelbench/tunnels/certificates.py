"""Certificates of an authority that lives for one bring-up of a tunnel (RFC 5280)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

Role = Literal["client", "server"]

_USAGES = {"client": ExtendedKeyUsageOID.CLIENT_AUTH, "server": ExtendedKeyUsageOID.SERVER_AUTH}
_AUTHORITY = "tunnelbench"


@dataclass(frozen=True)
class Identity:
    """A certificate and its private key, both in PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A certificate authority with a new P-256 key, valid for a day around now."""

    def __init__(self) -> None:
        """Makes the key and its certificate."""
        self._key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        self._certificate = (
            _builder(_AUTHORITY, self._key.public_key())
            .add_extension(constraints, critical=True)
            .add_extension(_key_usage(certificates=True), critical=True)
            .sign(self._key, SHA256())
        )

    @property
    def certificate(self) -> bytes:
        """Its own certificate in PEM."""
        return self._certificate.public_bytes(Encoding.PEM)

    def issue(self, name: str, role: Role) -> Identity:
        """A new P-256 key with a certificate for one role in TLS, `name` as its common name."""
        key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=False, path_length=None)
        certificate = (
            _builder(name, key.public_key())
            .add_extension(constraints, critical=True)
            .add_extension(_key_usage(certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([_USAGES[role]]), critical=False)
            .sign(self._key, SHA256())
        )
        return Identity(
            certificate.public_bytes(Encoding.PEM),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )


def _builder(name: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_named(name))
        .issuer_name(_named(_AUTHORITY))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # A node's clock may differ from this machine's.
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_usage(*, certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not certificates,
        key_cert_sign=certificates,
        crl_sign=certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
