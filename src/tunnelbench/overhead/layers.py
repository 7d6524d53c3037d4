"""Ready-made layers, each as its standard or its implementation defines it.

Ciphers and integrity are given by the titles that suites have: `AES-128-CBC`, `HMAC-SHA-1-96`, `none`.
"""

from __future__ import annotations

from tunnelbench.lab.topology import Family
from tunnelbench.overhead.algorithms import block_bytes, integrity_bytes, is_cbc, tag_bytes
from tunnelbench.overhead.encapsulation import Field, Kind, Layer, Padding

ETHERNET_HEADER = 14


def header(name: str, reference: str, size: int, kind: Kind = Kind.TUNNEL) -> Layer:
    """A layer that is nothing but a header of one size, for formats that are not here."""
    return Layer(name, reference, (Field(f"{name} header", size, kind),))


# Links and IP


def ethernet() -> Layer:
    """Destination, source and type (IEEE 802.3); no frame check sequence, which interfaces don't count."""
    return header("Ethernet", "IEEE 802.3", ETHERNET_HEADER, Kind.LINK)


def ip(family: Family) -> Layer:
    """An IP header without options or extension headers."""
    return ipv4() if family is Family.IPV4 else ipv6()


def ipv4() -> Layer:
    """IPv4 without options (RFC 791)."""
    return Layer("IPv4", "RFC 791", (Field("IPv4 header", 20, Kind.NETWORK),), family=Family.IPV4)


def ipv6() -> Layer:
    """IPv6 without extension headers (RFC 8200)."""
    return Layer("IPv6", "RFC 8200", (Field("IPv6 header", 40, Kind.NETWORK),), family=Family.IPV6)


def ipv6_tunnel_limit() -> Layer:
    """The destination option that Linux puts between headers by default (RFC 2473 section 4.1.1)."""
    return header("Tunnel encapsulation limit", "RFC 2473", 8, Kind.NETWORK)


def udp() -> Layer:
    """UDP (RFC 768)."""
    return header("UDP", "RFC 768", 8, Kind.TRANSPORT)


def tcp(timestamps: bool = True) -> Layer:
    """TCP (RFC 9293), with the timestamps that Linux sends by default (RFC 7323, 12 bytes when aligned)."""
    fields = [Field("TCP header", 20, Kind.TRANSPORT)]
    if timestamps:
        fields.append(Field("TCP timestamps", 12, Kind.TRANSPORT))
    return Layer("TCP", "RFC 9293, RFC 7323", tuple(fields), is_stream=True)


# Tunnels without encryption


def gre(key: bool = False, sequence: bool = False, checksum: bool = False) -> Layer:
    """GRE (RFC 2784) with the fields of RFC 2890."""
    return header("GRE", "RFC 2784, RFC 2890", 4 + 4 * (key + sequence + checksum))


def vxlan() -> Layer:
    """VXLAN (RFC 7348); an Ethernet frame follows."""
    return header("VXLAN", "RFC 7348", 8)


def l2tp(length: bool = False, sequence: bool = False, offset: bool = False) -> Layer:
    """A data message of L2TP version 2 (RFC 2661 section 3.1)."""
    return header("L2TP", "RFC 2661", 6 + 2 * length + 4 * sequence + 2 * offset)


def ppp(address_and_control: bool = True, protocol_bytes: int = 2) -> Layer:
    """PPP (RFC 1661): address and control unless they are compressed away, then the protocol number."""
    return header("PPP", "RFC 1661", 2 * address_and_control + protocol_bytes)


def mppe() -> Layer:
    """MPPE's flags and coherency count (RFC 3078); the PPP protocol after it is encrypted, too."""
    return header("MPPE", "RFC 3078", 2)


def pptp_gre(acknowledgement: bool = False) -> Layer:
    """PPTP's enhanced GRE (RFC 2637 section 4.1) with a sequence number and perhaps an acknowledgement."""
    return header("GRE", "RFC 2637", 12 + 4 * acknowledgement)


# IPsec


def esp(encryption: str, integrity: str, icv: int | None = None) -> Layer:
    """ESP (RFC 4303). `icv` is the integrity check value's size where the titles don't say it."""
    iv = block_bytes(encryption) if is_cbc(encryption) else 0 if encryption == "none" else 8
    check = (tag_bytes(encryption) or integrity_bytes(integrity)) if icv is None else icv
    return Layer(
        "ESP",
        "RFC 4303",
        (Field("ESP header", 8, Kind.TUNNEL), Field("IV", iv, Kind.INITIALISATION_VECTOR)),
        Padding(max(4, block_bytes(encryption)), counted=2),
        (Field("ESP trailer", 2, Kind.TUNNEL), Field("ICV", check, Kind.INTEGRITY)),
    )


def ah(integrity: str, aligned: int = 8) -> Layer:
    """AH (RFC 4302). The whole is a multiple of 4 bytes over IPv4, of 8 over IPv6.

    Linux aligns to 8 over IPv4 too, unless its association has the flag `align4`.
    """
    check = integrity_bytes(integrity)
    return Layer(
        "AH",
        "RFC 4302",
        (
            Field("AH header", 12, Kind.TUNNEL),
            Field("ICV", check, Kind.INTEGRITY),
            Field("padding", -(12 + check) % aligned, Kind.PADDING),
        ),
    )


def ipcomp() -> Layer:
    """IPComp (RFC 3173), where what follows was compressed; what does not shrink has no such header."""
    return header("IPComp", "RFC 3173", 4)


def macsec(sci: bool = True, icv: int = 16) -> Layer:
    """MACsec (IEEE 802.1AE): the tag, with or without its channel identifier, and the check value."""
    return Layer(
        "MACsec",
        "IEEE 802.1AE",
        (Field("MACsec tag", 8 + 8 * sci, Kind.TUNNEL),),
        after=(Field("ICV", icv, Kind.INTEGRITY),),
    )


# Programs' own formats


def wireguard(inner_mtu: int | None = 1420) -> Layer:
    """WireGuard's transport data (NDSS 2017, section 5.4.6): padded to 16 bytes, not beyond the MTU."""
    return Layer(
        "WireGuard",
        "WireGuard, NDSS 2017",
        (Field("WireGuard header", 8, Kind.TUNNEL), Field("counter", 8, Kind.INITIALISATION_VECTOR)),
        Padding(16, limit=inner_mtu),
        (Field("tag", 16, Kind.INTEGRITY),),
    )


def openvpn_data(
    encryption: str,
    integrity: str,
    *,
    peer_id: bool = True,
    static_key: bool = False,
    compression_byte: bool = False,
    over_tcp: bool = False,
) -> Layer:
    """OpenVPN's data channel (doc/doxygen/doc_protocol_overview.h and ssl.h of its source).

    With TLS keys there is an opcode, with the peer's number since version 2 of the format. Packet numbers
    have 4 bytes with TLS keys, 8 with a static key. Over TCP each packet has its length before it.
    """
    opcode = 0 if static_key else 4 if peer_id else 1
    number = 8 if static_key else 4
    tag = tag_bytes(encryption)
    before = [
        Field("length", 2 * over_tcp, Kind.TUNNEL),
        Field("opcode", opcode, Kind.TUNNEL),
    ]
    if tag:
        before += [Field("packet number", 4, Kind.INITIALISATION_VECTOR), Field("tag", tag, Kind.INTEGRITY)]
        padding = None
    else:
        block = block_bytes(encryption)
        before += [
            Field("HMAC", integrity_bytes(integrity), Kind.INTEGRITY),
            Field("IV", block if is_cbc(encryption) else 0, Kind.INITIALISATION_VECTOR),
            Field("packet number", number, Kind.TUNNEL),
        ]
        padding = Padding(block, number + compression_byte, minimum=1) if is_cbc(encryption) else None
    before.append(Field("compression", int(compression_byte), Kind.TUNNEL))
    return Layer("OpenVPN", "OpenVPN protocol", tuple(before), padding)


def ssh_packet(encryption: str, integrity: str, *, encrypt_then_mac: bool = False) -> Layer:
    """SSH's binary packet (RFC 4253 section 6): padding of at least 4 bytes, to blocks of at least 8.

    AEADs (RFC 5647 and OpenSSH's chacha20-poly1305) and OpenSSH's encrypt-then-MAC leave the length out of
    the blocks.
    """
    tag = tag_bytes(encryption)
    length_apart = bool(tag) or encrypt_then_mac
    return Layer(
        "SSH packet",
        "RFC 4253",
        (Field("packet length", 4, Kind.TUNNEL), Field("padding length", 1, Kind.TUNNEL)),
        Padding(_ssh_block(encryption), counted=1 if length_apart else 5, minimum=4),
        (Field("MAC", tag or integrity_bytes(integrity), Kind.INTEGRITY),),
    )


def ssh_channel_data() -> Layer:
    """SSH's message that carries data of a channel (RFC 4254 section 5.2)."""
    return header("SSH channel data", "RFC 4254", 9)


def ssh_tunnel() -> Layer:
    """The address family before each packet that OpenSSH tunnels (PROTOCOL section 2.3).

    The length that stands before it there is that of the channel's data. Ethernet frames have nothing else.
    """
    return header("SSH tunnel", "OpenSSH PROTOCOL", 4)


def tls_record(encryption: str, integrity: str, version: str = "1.3") -> Layer:
    """A record of TLS 1.2 (RFC 5246, RFC 5288, RFC 7905) or 1.3 (RFC 8446), without padding of its own.

    CBC is with encrypt-then-MAC (RFC 7366), on which OpenSSL and GnuTLS agree with themselves.
    """
    return _record("TLS", "RFC 8446" if version == "1.3" else "RFC 5246", 5, encryption, integrity, version)


def dtls_record(encryption: str, integrity: str, version: str = "1.2") -> Layer:
    """A record of DTLS 1.2 (RFC 6347, RFC 6655): TLS' header with epoch and sequence number.

    CBC is with encrypt-then-MAC, as in TLS.
    """
    return _record("DTLS", "RFC 6347", 13, encryption, integrity, version)


def _record(
    name: str, reference: str, header_bytes: int, encryption: str, integrity: str, version: str
) -> Layer:
    tag = tag_bytes(encryption)
    before = [Field(f"{name} record header", header_bytes, Kind.TUNNEL)]
    after: list[Field] = []
    padding = None
    if version == "1.3":
        after.append(Field("content type", 1, Kind.TUNNEL))
    elif tag:
        explicit = 0 if encryption == "ChaCha20-Poly1305" else 8
        before.append(Field("IV", explicit, Kind.INITIALISATION_VECTOR))
    elif is_cbc(encryption):
        before.append(Field("IV", block_bytes(encryption), Kind.INITIALISATION_VECTOR))
        padding = Padding(block_bytes(encryption), minimum=1)
    after.append(Field("tag" if tag else "MAC", tag or integrity_bytes(integrity), Kind.INTEGRITY))
    return Layer(f"{name} record", reference, tuple(before), padding, tuple(after))


def _ssh_block(encryption: str) -> int:
    # A counter mode counts by its cipher's blocks here, unlike in ESP.
    if encryption.startswith("AES"):
        return 16
    return max(8, block_bytes(encryption))
