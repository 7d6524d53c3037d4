"""strongSwan's configuration for one gateway: strongswan.conf(5) and swanctl.conf(5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tunnelbench.lab.topology import Family, Site
from tunnelbench.tunnels.base import Gateway
from tunnelbench.tunnels.certificates import Identity

DIRECTORY = "/run/strongswan"
SOCKET = f"unix://{DIRECTORY}/charon.vici"

# Only what is needed is loaded: some plugins of the packages halve the speed of the data path.
_PLUGINS = (
    *("random", "nonce", "drbg", "x509", "constraints", "pubkey", "pem", "pkcs1", "pkcs8"),
    *("openssl", "gcrypt", "aes", "rc2", "sha1", "sha2", "md5", "gmp", "curve25519", "fips-prf"),
    *("hmac", "kdf", "xcbc", "cmac", "ctr", "ccm", "gcm", "chapoly", "socket-default", "vici"),
)
_DATA_PLANES = {"kernel": ("kernel-netlink",), "user-space": ("kernel-libipsec", "kernel-netlink")}
_VERSIONS = {"ikev1": 1, "ikev2": 2}
_AUTHENTICATIONS = {"psk": "psk", "certificate": "pubkey"}

Section = Mapping[str, "str | int | Section"]


@dataclass(frozen=True)
class Child:
    """What one pair of security associations protects."""

    name: str
    selectors: Callable[[Site], str]
    """The traffic of a site, as swanctl.conf(5) writes it in `local_ts`."""


def inside_networks(site: Site) -> str:
    """Selects the traffic of a site's hosts."""
    return f"{site.inside.ipv4.network},{site.inside.ipv6.network}"


NETWORKS = Child("net", inside_networks)
"""All traffic between two sites in one pair of associations."""


@dataclass(frozen=True)
class Connection:
    """What two ends agree on in one exchange of keys."""

    name: str
    children: Sequence[Child]
    inside: Family | None = None
    """The IP version of the sites' inside addresses, if those are its ends: for transport mode between hosts.
    None where the ends are the gateways' outside addresses."""

    def address(self, site: Site, outer: Family) -> str:
        """A site's end."""
        return str(site.inside.address(self.inside) if self.inside else site.outside.address(outer))


BETWEEN_GATEWAYS = Connection("gateways", (NETWORKS,))
"""All traffic between two sites, agreed on between their gateways."""


@dataclass(frozen=True)
class Protection:
    """How two gateways agree on keys, and what they protect with them."""

    transforms: str
    """In strongSwan's words for proposals, such as `aes128-sha1`."""
    connections: Sequence[Connection] = (BETWEEN_GATEWAYS,)
    protocol: str = "esp"
    """`esp` or `ah`."""
    mode: str = "tunnel"
    """`tunnel` or `transport`."""
    version: str = "ikev2"
    """`ikev2` or `ikev1`."""
    authentication: str = "psk"
    """`psk` or `certificate`."""
    group: str = "modp2048"
    """The Diffie-Hellman group of the key exchange."""
    data_plane: str = "kernel"
    """Who encrypts: `kernel`, or charon itself (`user-space`)."""
    in_udp: bool = False
    """Whether ESP travels in UDP as if there were a NAT (RFC 3948)."""
    compressed: bool = False
    """Whether IPComp is asked for (RFC 3173)."""
    child_settings: Section = field(default_factory=dict[str, "str | int | Section"])
    """More settings of every child, such as `if_id_in`."""

    @property
    def children(self) -> Sequence[Child]:
        """Those of all connections."""
        return [child for connection in self.connections for child in connection.children]


@dataclass(frozen=True)
class Credentials:
    """What one gateway proves with who it is: a key that both share, or a certificate and its authority's."""

    shared: str = ""
    own: Identity | None = None
    authority: bytes = b""

    @property
    def files(self) -> Mapping[str, bytes]:
        """Files below the configuration's directory, where swanctl(8) looks for them."""
        if self.own is None:
            return {}
        return {
            "x509/own.pem": self.own.certificate,
            "x509ca/authority.pem": self.authority,
            "private/own.pem": self.own.key,
        }


def daemon_settings(protection: Protection) -> str:
    """strongswan.conf(5)."""
    daemon: Section = {
        "load_modular": "no",
        "load": " ".join((*_DATA_PLANES[protection.data_plane], *_PLUGINS)),
        # Routes are ours, so that a daemon that is killed leaves none.
        "install_routes": "no",
        **({"install_virtual_ip_on": "lo"} if protection.data_plane == "kernel" else {}),
        "routing_table": 0,
        # Twofish and Serpent have numbers for private use, which are for peers of the same make.
        "send_vendor_id": "yes",
        "filelog": {"stderr": {"default": 1}},
        "journal": {"default": -1},
        "plugins": {"vici": {"socket": SOCKET}, "openssl": {"load_legacy": "yes"}},
    }
    tool: Section = {"load": "pem pkcs1 pkcs8 x509 openssl random", "socket": SOCKET}
    return written({"charon-systemd": daemon, "swanctl": tool})


def connections(end: Gateway, protection: Protection, credentials: Credentials) -> str:
    """swanctl.conf(5)."""
    secrets: Section = {"ike-peer": {"secret": credentials.shared}} if credentials.shared else {}
    of_all = {
        connection.name: connection_settings(end, connection, protection, credentials)
        for connection in protection.connections
    }
    return written({"connections": of_all, "secrets": secrets})


def connection_settings(
    end: Gateway, connection: Connection, protection: Protection, credentials: Credentials
) -> Section:
    """What one end says of a connection, below its name in swanctl.conf(5)."""
    own, peer = (connection.address(site, end.outer) for site in (end.site, end.peer))
    own_name, peer_name, certificate = own, peer, {}
    if credentials.own:
        own_name, peer_name = f"CN={end.site.gateway}", f"CN={end.peer.gateway}"
        certificate = {"certs": "own.pem"}
    authentication = _AUTHENTICATIONS[protection.authentication]
    return {
        "version": _VERSIONS[protection.version],
        "local_addrs": own,
        "remote_addrs": peer,
        "proposals": f"aes128-sha256-{protection.group}",
        "encap": "yes" if protection.in_udp else "no",
        "mobike": "no",
        "local": {"auth": authentication, "id": own_name, **certificate},
        "remote": {"auth": authentication, "id": peer_name},
        "children": {child.name: _child(end, child, protection) for child in connection.children},
    }


def _child(end: Gateway, child: Child, protection: Protection) -> Section:
    return {
        "local_ts": child.selectors(end.site),
        "remote_ts": child.selectors(end.peer),
        "mode": protection.mode,
        f"{protection.protocol}_proposals": protection.transforms,
        "ipcomp": "yes" if protection.compressed else "no",
        **protection.child_settings,
    }


def written(section: Section, depth: int = 0) -> str:
    """As strongSwan's files have it."""
    lines = ""
    for name, value in section.items():
        indent = "  " * depth
        if isinstance(value, Mapping):
            lines += f"{indent}{name} {{\n{written(value, depth + 1)}{indent}}}\n"
        else:
            lines += f"{indent}{name} = {value}\n"
    return lines
