"""A treatment: the levels that are hard to change. One bring-up of a treatment is an instance."""

from __future__ import annotations

from tunnelbench.study.fields import Frozen
from tunnelbench.study.systems import read_systems
from tunnelbench.study.vocabulary import InternetProtocol

BASELINE_VPN = "open"
"""Plain IP, to which every result is related."""

WRITTEN_IP: dict[InternetProtocol, str] = {"ipv4": "IPv4", "ipv6": "IPv6"}
"""IP versions as they are written in sentences."""


class Treatment(Frozen, frozen=True):
    """What is brought up, and in which lab."""

    vpn: str
    suite: str
    options: str = ""
    """Levels of the VPN's options that are not the default: `carrier=tcp device=tap`, in order of names."""
    outer_ip: InternetProtocol = "ipv4"
    """The IP version between the gateways."""
    clients: int = 1
    """How many clients use the tunnel at once."""
    gateway_os: str
    """The image that gateways run, or that of gw1 and that of gw2, as `systems.Systems` writes them."""
    host_os: str
    """The same of hosts, and of the clients of remote access."""
    mtu: int
    """Bytes."""

    @property
    def tunnel(self) -> str:
        """`VPN/SUITE`, or the VPN alone where it doesn't encrypt, with what is unusual about it."""
        name = self.vpn if self.suite == "none" else f"{self.vpn}/{self.suite}"
        return " ".join([name, *self._unusual("over {}", "with {} clients")])

    @property
    def key(self) -> str:
        """Stable name, different for every treatment."""
        unusual = self._unusual("outer={}", "clients={}")
        place = [f"gateway_os={self.gateway_os}", f"host_os={self.host_os}", f"mtu={self.mtu}"]
        return " ".join([f"{self.vpn}/{self.suite}", *unusual, *place])

    @property
    def systems(self) -> str:
        """What the nodes run, in words."""
        return written_systems(self.gateway_os, self.host_os)

    @property
    def images(self) -> tuple[str, ...]:
        """The names of all images that its nodes run, each once."""
        gateways, hosts = read_systems(self.gateway_os), read_systems(self.host_os)
        return tuple(dict.fromkeys((*gateways.images, *hosts.images)))

    @property
    def is_baseline(self) -> bool:
        """Whether this is plain IP."""
        return self.vpn == BASELINE_VPN

    @property
    def baseline(self) -> Treatment:
        """Plain IP in the same lab: what this treatment is related to."""
        return Treatment(
            vpn=BASELINE_VPN,
            suite="none",
            clients=self.clients,
            gateway_os=self.gateway_os,
            host_os=self.host_os,
            mtu=self.mtu,
        )

    def option_levels(self) -> dict[str, str]:
        """The options that are not the default, by name."""
        return read_options(self.options)

    def _unusual(self, outer: str, clients: str) -> list[str]:
        parts = [self.options] if self.options else []
        parts += [outer.format(WRITTEN_IP[self.outer_ip])] if self.outer_ip != "ipv4" else []
        parts += [clients.format(self.clients)] if self.clients != 1 else []
        return parts


def written_systems(gateway_os: str, host_os: str) -> str:
    """What gateways and hosts run, in words."""
    return gateway_os if host_os == gateway_os else f"gateways {gateway_os}, hosts {host_os}"


def read_options(options: str) -> dict[str, str]:
    """Levels by name, from options as a treatment has them."""
    return dict(pair.split("=", 1) for pair in options.split())


def written_options(levels: dict[str, str]) -> str:
    """Options as a treatment has them."""
    return " ".join(f"{name}={level}" for name, level in sorted(levels.items()))
