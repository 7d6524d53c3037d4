"""IPsec ESP in tunnel mode with manual keys (RFC 4301, RFC 4303): the fewest moving parts.

Security associations and policies are written straight into both kernels.
"""

from __future__ import annotations

import re
import secrets
import zlib
from contextlib import AsyncExitStack

from tunnelbench.lab.features import Feature
from tunnelbench.lab.node import Node
from tunnelbench.lab.topology import Family
from tunnelbench.tunnels.base import Established, Gateway, Needs, ReadBack, Tunnel, Variant
from tunnelbench.tunnels.ipsec_suites import ESP_SUITES, as_esp


class IpsecManual(Tunnel):
    """ESP between the gateways, keyed by hand."""

    name = "ipsec-manual"
    title = "IPsec ESP, manual keys"
    suites = ESP_SUITES

    def in_kernel(self, variant: Variant) -> bool:
        """Always."""
        return True

    def needs(self, variant: Variant) -> Needs:
        """ESP with the suite's algorithms."""
        esp = as_esp(variant.suite)
        ends = "src 127.0.0.1 dst 127.0.0.2"
        state = f"ip xfrm state add {ends} proto esp spi {_number(esp.name):#x} mode tunnel"
        words = [word.strip('"') for word in f"{state} {esp.example_keys()}".split()]
        return Needs(features=frozenset({Feature(f"ESP with {esp.name}", tuple(words))}))

    async def up(
        self, left: Gateway, right: Gateway, variant: Variant, cleanup: AsyncExitStack
    ) -> Established:
        """Writes the same two associations and the matching policies into both kernels."""
        esp = as_esp(variant.suite)
        associations = "".join(
            f"xfrm state add src {source.site.outside.ipv4.ip} dst {target.site.outside.ipv4.ip} proto esp "
            f"spi {secrets.randbelow(1 << 31) + 256:#x} reqid {_reqid(source)} mode tunnel flag af-unspec "
            f"{esp.fresh_keys()}\n"
            for source, target in ((left, right), (right, left))
        )
        for end in (left, right):
            cleanup.push_async_callback(_forget, end.node)
            await end.node.run(
                "ip", "-batch", "-", input=(associations + _policies(end, left, right)).encode()
            )
            via = {family: end.peer.outside.address(family) for family in Family}
            await end.route_to_peer(cleanup, via=via)

        async def read_back() -> ReadBack:
            return ReadBack.agreed([read_state(await _associations(end.node)) for end in (left, right)])

        return Established(wire=frozenset({"ipv4 esp"}), read_back=read_back)


TUNNEL = IpsecManual()


def _number(text: str) -> int:
    """A security parameter index of its own for each suite that is tried; below 256 is reserved."""
    return zlib.crc32(text.encode()) | 0x100


def _reqid(source: Gateway) -> int:
    return 1 + (source.site.outside.ipv4.ip > source.peer.outside.ipv4.ip)


def _policies(end: Gateway, left: Gateway, right: Gateway) -> str:
    lines = ""
    for source, target in ((left, right), (right, left)):
        directions = ("out",) if source is end else ("in", "fwd")
        for family in Family:
            selector = f"src {source.site.inside.network(family)} dst {target.site.inside.network(family)}"
            template = f"tmpl src {source.site.outside.ipv4.ip} dst {target.site.outside.ipv4.ip}"
            for direction in directions:
                lines += (
                    f"xfrm policy add {selector} dir {direction} {template} proto esp "
                    f"reqid {_reqid(source)} mode tunnel\n"
                )
    return lines


async def _forget(node: Node) -> None:
    await node.run("ip", "-batch", "-", input=b"xfrm policy flush\nxfrm state flush\n")


async def _associations(node: Node) -> str:
    return (await node.run("ip", "xfrm", "state", "list")).text


def read_state(text: str) -> ReadBack:
    """The suite that all associations of a kernel have, if they have one in common."""
    return ReadBack(_suite_of(text), _without_keys(text))


def _suite_of(text: str) -> str | None:
    found = {
        tuple(
            (word, name, (len(key) - 2) * 4, int(icv or 0))
            for word, name, key, icv in re.findall(
                r"^\s+(enc|auth-trunc|aead) (\S+) (0x[0-9a-f]*|\"\")? ?(\d+)?$", association, re.MULTILINE
            )
        )
        for association in re.split(r"^(?=src )", text, flags=re.MULTILINE)
        if "proto esp" in association and "mode tunnel" in association
    }
    if len(found) != 1:
        return None
    wanted = {(word, name, max(bits, 0), icv) for word, name, bits, icv in found.pop()}
    for suite in map(as_esp, ESP_SUITES.values()):
        own = {(word, a.kernel_name, a.key_bits, a.icv_bits) for word, a in suite.algorithms.items()}
        if own == wanted:
            return suite.name
    return None


def _without_keys(text: str) -> str:
    return re.sub(r"0x[0-9a-f]{16,}", lambda key: f"({(len(key[0]) - 2) * 4} bits)", text).strip()
