"""IPsec by libreswan: keys from IKE by its daemon pluto, packets encrypted by the kernel.

Each gateway knows the other by a key that both share. IKE's own messages are protected with AES-128-CBC and
HMAC-SHA-256, whatever the suite; new keys of packets are derived without another Diffie-Hellman exchange.
Each IP version of the sites' addresses has a pair of associations of its own. What is not named in the
configuration is libreswan's default: in IKEv2, sequence numbers have 64 bits (ESN).

Debian's package conflicts with strongSwan's, so images have it unpacked, without its service.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from tunnelbench.lab.connection import NodeError
from tunnelbench.lab.node import Node
from tunnelbench.lab.program import Program
from tunnelbench.lab.topology import Family
from tunnelbench.overhead import Encapsulation
from tunnelbench.overhead import layers as formats
from tunnelbench.tunnels import xfrm
from tunnelbench.tunnels.base import (
    Established,
    Gateway,
    Needs,
    Option,
    Place,
    ReadBack,
    Tunnel,
    Variant,
    options,
    suites,
)
from tunnelbench.tunnels.daemons import all_print, place_files, seconds_between, start_daemon
from tunnelbench.tunnels.ipsec_refusals import refusal_of_ike_version
from tunnelbench.tunnels.ipsec_rekeying import Pairs, all_replaced
from tunnelbench.tunnels.ipsec_suites import ESP_SUITES, as_esp
from tunnelbench.tunnels.libreswan_status import all_indices, read_status

DIRECTORY = "/run/libreswan"
SOCKETS = "/run/pluto"
"""Where pluto makes the socket by which it is told what to do."""
READY_SECONDS = 20.0
"""How long a step may take; idle none takes more than two."""

_PROGRAMS = "/usr/libexec/ipsec"
_SETTINGS = f"{DIRECTORY}/ipsec.conf"
_DATABASE = f"{DIRECTORY}/nss"
_LISTENING = "loading secrets from"
_BEGUN = r"initiating IKEv[12]"
_NO_REKEY = "libreswan can't force those of an IKEv1 connection"

_VERSIONS = {"ikev2": "insist", "ikev1": "never"}
_GROUPS = {"ecp256": "dh19", "ecp384": "dh20", "ecp521": "dh21", "curve25519": "dh31"}


class Libreswan(Tunnel):
    """IPsec between the gateways, keyed by pluto."""

    name = "libreswan"
    title = "IPsec, libreswan"
    suites = suites(
        *(suite for suite in ESP_SUITES.values() if as_esp(suite).libreswan and suite.integrity != "none")
    )
    options = options(
        Option("version", ("ikev2", "ikev1"), "IKE's version."),
        Option(
            "group",
            ("modp2048", "modp1536", "modp3072", "modp4096", *_GROUPS),
            "The Diffie-Hellman group of the key exchange.",
        ),
        Option("nat-traversal", ("no", "yes"), "Whether ESP travels in UDP as if there were a NAT."),
    )
    outer_families = frozenset(Family)

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def refusal(self, variant: Variant, place: Place) -> str | None:
        """What IKEv1 has no number for."""
        return refusal_of_ike_version(variant)

    def needs(self, variant: Variant) -> Needs:
        """pluto, the tool that makes its database, and a kernel with the suite."""
        features = frozenset({_step(variant).feature(variant.outer)})
        return Needs(programs=frozenset({"ipsec", "certutil"}), features=features)

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Starts both daemons, and has the left one initiate."""
        shared = secrets.token_hex(32)
        ends: list[Pluto] = []
        for end in (left, right):
            await xfrm.load_modules(end.node, [_step(variant)], variant.outer, cleanup)
            ends.append(await _start(end, variant, shared, cleanup))
            via = {family: end.peer.outside.address(family) for family in Family}
            await end.route_to_peer(cleanup, via=via)
        programs = [end.program for end in ends]
        await all_print(_LISTENING, programs, READY_SECONDS)
        for end in ends:
            await end.load()
        first, *_ = [await _agree(family, ends) for family in Family]
        return Established(
            wire=frozenset({f"{variant.outer} {_outermost(variant)}"}),
            read_back=partial(_read_back, ends),
            programs=programs,
            facts={
                "IKE version": variant["version"],
                "DH group": variant["group"],
                "protocol": "esp",
                "mode": "tunnel",
                "compression": "none",
                "NAT traversal": variant["nat-traversal"],
            },
            rekey=partial(_rekey, ends) if variant["version"] == "ikev2" else None,
            rekey_refusal=None if variant["version"] == "ikev2" else _NO_REKEY,
            handshake_seconds=first,
        )

    def encapsulation(self, variant: Variant) -> Encapsulation:
        """ESP in tunnel mode, in UDP where that is asked for."""
        udp = [formats.udp()] if variant["nat-traversal"] == "yes" else []
        suite = variant.suite
        return Encapsulation(
            (formats.ip(variant.outer), *udp, formats.esp(suite.encryption, suite.integrity))
        )


TUNNEL = Libreswan()


@dataclass(frozen=True)
class Pluto:
    """A daemon that runs."""

    node: Node
    program: Program

    async def load(self) -> None:
        """Has it read its connections."""
        for family in Family:
            await self._run(f"{_PROGRAMS}/addconn", "--config", _SETTINGS, family.value)

    async def initiate(self, connection: str) -> None:
        """Has it begin to agree with its peer on keys for a connection."""
        await self._whack("--initiate", "--asynchronous", "--name", connection)

    async def rekey(self, connection: str) -> None:
        """Has it replace a connection's keys."""
        await self._whack("--rekey-ipsec", "--asynchronous", "--name", connection)

    async def status(self) -> str:
        """What it has agreed on with its peer, in its own words."""
        return await self._whack("--status")

    async def _whack(self, *arguments: str) -> str:
        return await self._run(f"{_PROGRAMS}/whack", *arguments)

    async def _run(self, *command: str) -> str:
        done = await self.node.run(*command, check=False, timeout=READY_SECONDS)
        if done.status != 0:
            said = (done.error_text or done.text).strip()
            raise NodeError(
                f"{self.node.name}: {' '.join(command)}: {said}; the last lines of pluto:\n"
                f"{self.program.log_tail()}"
            )
        return done.text


async def _start(end: Gateway, variant: Variant, shared: str, cleanup: AsyncExitStack) -> Pluto:
    await place_files(end.node, SOCKETS, {}, cleanup)
    files = {
        "ipsec.conf": "\n".join(_configuration(end, variant)).encode(),
        "ipsec.secrets": f': PSK "{shared}"\n'.encode(),
    }
    await place_files(end.node, DIRECTORY, files, cleanup)
    await end.node.run("mkdir", "-m", "700", _DATABASE)
    await end.node.run("certutil", "-N", "-d", f"sql:{_DATABASE}", "--empty-password")
    # A daemon that was killed leaves its associations and policies.
    cleanup.push_async_callback(xfrm.forget, end.node)
    settings = ("--config", _SETTINGS, "--secretsfile", f"{DIRECTORY}/ipsec.secrets", "--nssdir", _DATABASE)
    output = ("--nofork", "--stderrlog", "--log-no-time")
    program = await start_daemon(
        end.node, cleanup, f"{_PROGRAMS}/pluto", *settings, *output, "--rundir", SOCKETS
    )
    return Pluto(end.node, program)


def _configuration(end: Gateway, variant: Variant) -> Iterator[str]:
    group = _GROUPS.get(variant["group"], variant["group"])
    yield "config setup"
    yield "  ikev1-policy=accept"
    yield "conn %default"
    yield f"  left={end.outside}"
    yield f"  right={end.peer_outside}"
    yield f"  hostaddrfamily={variant.outer}"
    yield "  authby=secret"
    yield f"  ikev2={_VERSIONS[variant['version']]}"
    yield f"  ike=aes128-sha2_256-{group}"
    yield f"  esp={as_esp(variant.suite).libreswan}"
    yield "  pfs=no"
    yield f"  encapsulation={variant['nat-traversal']}"
    yield "  auto=ignore"
    # Routes are ours; its scripts would take seconds of the handshake in a kernel node.
    yield "  leftupdown=%disabled"
    for family in Family:
        yield f"conn {family}"
        yield f"  clientaddrfamily={family}"
        yield f"  leftsubnet={end.site.inside.network(family)}"
        yield f"  rightsubnet={end.peer.inside.network(family)}"
    yield ""


async def _agree(family: Family, ends: Sequence[Pluto]) -> float | None:
    """Has the first end initiate; returns the seconds until both have the family's associations."""
    programs = [end.program for end in ends]
    established = rf'"{family}" #\d+: .*(established Child SA|IPsec SA established)'
    try:
        await ends[0].initiate(family.value)
        await all_print(established, programs, READY_SECONDS)
    except NodeError as error:
        logs = "".join(f"\n{end.node.name}:\n{end.program.log_tail()}" for end in ends)
        raise NodeError(f"{error}; the last lines of both ends:{logs}") from error
    return seconds_between(programs[0], _BEGUN, programs, established)


async def _rekey(ends: Sequence[Pluto]) -> None:
    """Has the left end replace all keys of packets; returns once both use new ones."""
    old = await _pairs(ends)
    for family in Family:
        await ends[0].rekey(family.value)
    await all_replaced(old, partial(_pairs, ends), ends[0].program, READY_SECONDS)


async def _pairs(ends: Sequence[Pluto]) -> Pairs:
    """The indices of all associations, with those that are being deleted; none where both ends differ."""
    left, right = [all_indices(text) for text in await asyncio.gather(*(end.status() for end in ends))]
    return left if left == right else frozenset()


async def _read_back(ends: Sequence[Pluto]) -> ReadBack:
    return ReadBack.agreed(await asyncio.gather(*(_read_end(end) for end in ends)))


async def _read_end(end: Pluto) -> ReadBack:
    state = (await end.node.run("ip", "xfrm", "state", "list")).text
    return read_status(await end.status(), state, [family.value for family in Family])


def _step(variant: Variant) -> xfrm.Step:
    in_udp = variant["nat-traversal"] == "yes"
    return xfrm.Step("esp", "tunnel", as_esp(variant.suite).algorithms, for_both_families=True, in_udp=in_udp)


def _outermost(variant: Variant) -> str:
    return f"udp {xfrm.UDP_PORT}" if variant["nat-traversal"] == "yes" else "esp"
