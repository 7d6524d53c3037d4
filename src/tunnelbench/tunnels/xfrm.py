"""The kernel's IPsec (RFC 4301): associations and policies as ip-xfrm(8) writes and shows them.

What is done to a packet is a chain of steps, the innermost first: compressed, encrypted, authenticated. Each
step has an association of its own in either direction; a policy names all of them.
"""

from __future__ import annotations

import re
import secrets
import shlex
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from tunnelbench.lab.features import Feature
from tunnelbench.lab.node import Node
from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import ReadBack
from tunnelbench.tunnels.ipsec_suites import CIPHERS, ESP_SUITES, Algorithm, as_esp

UDP_PORT = 4500
"""Where ESP in UDP goes (RFC 3948)."""

Address = IPv4Address | IPv6Address
_LOAD_SECONDS = 60.0
"""A first association may have a kernel load a chain of modules, on a busy machine."""

_PROTOCOLS = {"esp": "ESP", "ah": "AH", "comp": "IPComp"}
_FIRST_INDEX, _LAST_COMPRESSION_INDEX = 256, 61439
"""Security parameter indices below are reserved (RFC 4303); those of IPComp have 16 bits (RFC 3173)."""


@dataclass(frozen=True)
class Step:
    """One thing that is done to each packet."""

    protocol: str
    """`esp`, `ah` or `comp`, as ip-xfrm(8) calls them."""
    mode: str
    """`tunnel` or `transport`."""
    algorithms: Mapping[str, Algorithm]
    """By ip-xfrm(8)'s words: `enc`, `auth-trunc`, `aead`; none for `comp`."""
    for_both_families: bool
    """Whether packets of either family go through one association, as they do into a tunnel."""
    in_udp: bool = False
    """Whether ESP travels in UDP datagrams (RFC 3948)."""

    @property
    def _last_index(self) -> int:
        return _LAST_COMPRESSION_INDEX if self.protocol == "comp" else (1 << 32) - 1

    def feature(self, family: Family) -> Feature:
        """That a kernel can do this between addresses of a family."""
        ends = ("127.0.0.1", "127.0.0.2") if family is Family.IPV4 else ("fd00:ffff::1", "fd00:ffff::2")
        names = " and ".join(algorithm.kernel_name for algorithm in self.algorithms.values())
        what = f"{_PROTOCOLS[self.protocol]} in {self.mode} mode" + (f" with {names}" if names else "")
        title = f"{what}{' in UDP' * self.in_udp}{' over IPv6' * (family is Family.IPV6)}"
        # Each that is tried has an index of its own: they all are on one node at once.
        same_for_all = self._words(*ends, 0, 0, example_key)
        index = _FIRST_INDEX + zlib.crc32(same_for_all.encode()) % (self._last_index - _FIRST_INDEX)
        words = shlex.split(self._words(*ends, index, 0, example_key))
        return Feature(title, ("ip", "xfrm", "state", "add", *words))

    def association(self, source: Address, target: Address, request: int) -> str:
        """The command that adds it with a new key and a new index, for ip(8)'s batches."""
        index = _FIRST_INDEX + secrets.randbelow(self._last_index - _FIRST_INDEX)
        return f"xfrm state add {self._words(source, target, index, request, secrets.token_bytes)}\n"

    def template(self, source: Address, target: Address, request: int, *, inbound: bool) -> str:
        """Its part of a policy."""
        # What does not shrink is not compressed (RFC 3173), so what arrives may lack that step.
        level = " level use" if self.protocol == "comp" and inbound else ""
        return f"tmpl src {source} dst {target} proto {self.protocol} reqid {request} mode {self.mode}{level}"

    def _words(
        self,
        source: object,
        target: object,
        index: int,
        request: int,
        make_key: Callable[[int], bytes],
    ) -> str:
        words = [f"src {source} dst {target} proto {self.protocol} spi {index:#x} reqid {request}"]
        words.append(f"mode {self.mode}")
        if self.for_both_families:
            words.append("flag af-unspec")
        for word, algorithm in self.algorithms.items():
            key = make_key(algorithm.key_bits // 8)
            words.append(f'{word} "{algorithm.kernel_name}" ' + (f"0x{key.hex()}" if key else '""'))
            if word != "enc":
                words.append(str(algorithm.icv_bits))
        if self.protocol == "comp":
            words.append("comp deflate")
        if self.in_udp:
            words.append(f"encap espinudp {UDP_PORT} {UDP_PORT} {'::' if ':' in str(source) else '0.0.0.0'}")
        return " ".join(words)


@dataclass(frozen=True)
class Way:
    """One direction of protected traffic: between which addresses associations protect which packets."""

    source: Address
    target: Address
    selectors: tuple[str, ...]
    """The packets, as policies of ip-xfrm(8) select them."""
    request: int
    """A number of its own, by which policies find their associations."""
    outbound_at: str
    """The node that sends; all others receive."""

    def associations(self, chain: Sequence[Step]) -> str:
        """Those of each step, the same on both nodes, for ip(8)'s batches."""
        return "".join(step.association(self.source, self.target, self.request) for step in chain)

    def policies(self, chain: Sequence[Step], node: Node) -> str:
        """Those that a node has for this direction, for ip(8)'s batches."""
        is_outbound = node.name == self.outbound_at
        templates = " ".join(
            step.template(self.source, self.target, self.request, inbound=not is_outbound) for step in chain
        )
        lines = [
            f"xfrm policy add {selector} dir {direction} priority 2 {templates}\n"
            for selector in self.selectors
            for direction in (("out",) if is_outbound else ("in", "fwd"))
        ]
        if any(step.in_udp for step in chain) and not is_outbound:
            # A datagram with ESP in it is a packet of its own, which comes unprotected.
            ends = f"src {self.source} dst {self.target} proto udp sport {UDP_PORT} dport {UDP_PORT}"
            lines.append(f"xfrm policy add {ends} dir in priority 1\n")
        return "".join(lines)


async def protect(
    nodes: Sequence[Node], ways: Sequence[Way], chain: Sequence[Step], cleanup: AsyncExitStack
) -> None:
    """Writes the same associations and the matching policies into the kernels of all nodes."""
    associations = "".join(way.associations(chain) for way in ways)
    for node in nodes:
        policies = "".join(way.policies(chain, node) for way in ways)
        cleanup.push_async_callback(forget, node)
        batch = (associations + policies).encode()
        await node.run("ip", "-batch", "-", input=batch, timeout=_LOAD_SECONDS)


async def load_modules(node: Node, chain: Sequence[Step], family: Family, cleanup: AsyncExitStack) -> None:
    """Has a kernel load what a chain takes, which would else take a second or two of a handshake."""
    cleanup.push_async_callback(forget, node)
    for step in chain:
        await node.run(*step.feature(family).check, timeout=_LOAD_SECONDS)
    await forget(node)


async def forget(node: Node) -> None:
    """Takes all associations and policies from a kernel."""
    await node.run("ip", "-batch", "-", input=b"xfrm policy flush\nxfrm state flush\n")


async def read_back(nodes: Sequence[Node]) -> ReadBack:
    """The suite and the facts that the kernels of all nodes agree on."""
    return ReadBack.agreed(
        [read_state((await node.run("ip", "xfrm", "state", "list")).text) for node in nodes]
    )


def with_indices(state: str, indices: frozenset[int]) -> str:
    """The part of what a kernel shows of its associations that is about those with these indices."""
    parts = re.split(r"^(?=src )", state, flags=re.MULTILINE)
    found = [(part, re.search(r"\bspi 0x([0-9a-f]+)", part)) for part in parts]
    return "".join(part for part, index in found if index and int(index[1], 16) in indices)


def example_key(n_bytes: int) -> bytes:
    """A key that only tries whether a kernel has a transform."""
    return bytes(range(1, n_bytes + 1))


def facts_of(chain: Sequence[Step]) -> Mapping[str, str]:
    """What must be read back of a chain besides the suite."""
    return _facts([(step.protocol, step.mode, step.in_udp) for step in chain])


def read_state(text: str) -> ReadBack:
    """The suite and the facts that all directions of a kernel's associations have in common, if they do."""
    directions: dict[str, list[_Association]] = {}
    for part in re.split(r"^(?=src )", text, flags=re.MULTILINE):
        if association := _association(part):
            directions.setdefault(association.ends, []).append(association)
    suites = {_suite_of(associations) for associations in directions.values()}
    facts = [
        _facts([(one.protocol, one.mode, one.in_udp) for one in associations])
        for associations in directions.values()
    ]
    agreed = facts[0] if facts and all(one == facts[0] for one in facts) else dict[str, str]()
    return ReadBack(suites.pop() if len(suites) == 1 else None, _without_keys(text), agreed)


_Transform = tuple[str, str, int, int]
"""One in use: ip-xfrm(8)'s word for it, its kernel name, bits of key and of check value."""


@dataclass(frozen=True)
class _Association:
    ends: str
    protocol: str
    mode: str
    transforms: tuple[_Transform, ...]
    in_udp: bool


def _association(text: str) -> _Association | None:
    """None for what the kernel adds by itself, for packets that IPComp leaves as they are."""
    found = re.match(r"(src \S+ dst \S+)\s+proto (esp|ah|comp) .*\bmode (\S+)", text)
    if not found:
        return None
    transforms = re.findall(
        r"^\s+(enc|auth-trunc|aead) (\S+) (0x[0-9a-f]*|\"\")? ?(\d+)?$", text, re.MULTILINE
    )
    ends, protocol, mode = found.groups()
    return _Association(
        ends,
        protocol,
        mode,
        tuple((word, name, max(len(key) - 2, 0) * 4, int(icv or 0)) for word, name, key, icv in transforms),
        "encap type espinudp" in text,
    )


def _suite_of(associations: Sequence[_Association]) -> str | None:
    transforms = [transform for one in associations for transform in one.transforms]
    if all(word == "auth-trunc" for word, *_ in transforms):
        transforms.append(("enc", CIPHERS["null"].kernel_name, 0, 0))
    for suite in map(as_esp, ESP_SUITES.values()):
        own = [(word, a.kernel_name, a.key_bits, a.icv_bits) for word, a in suite.algorithms.items()]
        if sorted(own) == sorted(transforms):
            return suite.name
    return None


def _facts(done: Sequence[tuple[str, str, bool]]) -> Mapping[str, str]:
    """From protocol, mode, and whether it is in UDP, of each step."""
    protocols = {protocol for protocol, _, _ in done}
    return {
        "protocol": "+".join(sorted(protocols - {"comp"})),
        "mode": "tunnel" if any(mode == "tunnel" for _, mode, _ in done) else "transport",
        "compression": "deflate" if "comp" in protocols else "none",
        "NAT traversal": "yes" if any(in_udp for _, _, in_udp in done) else "no",
    }


def _without_keys(text: str) -> str:
    return re.sub(r"0x[0-9a-f]{16,}", lambda key: f"({(len(key[0]) - 2) * 4} bits)", text).strip()
