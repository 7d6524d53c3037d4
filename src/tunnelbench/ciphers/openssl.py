"""Times ciphers with OpenSSL's own `speed`, as a program's data plane would run them on a node.

It counts the processor's time, not the clock's, so that other work on the machine matters less.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tunnelbench.ciphers.algorithms import Algorithm
from tunnelbench.ciphers.cost import Cost, fit
from tunnelbench.lab.node import Node

_SIZES = (352, 1408)
"""Whole blocks of every cipher."""
_TIMEOUT = 20.0
_SPEED = re.compile(r"^\+F:\d+:[^:]+:([\d.]+)$", re.MULTILINE)
"""A line of `speed -mr`: bytes per second."""


async def version(node: Node) -> str | None:
    """Such as `OpenSSL 3.0.17`; None where the image has none."""
    ran = await node.run("openssl", "version", check=False)
    return " ".join(ran.text.split()[:2]) if ran.status == 0 else None


async def time_with_openssl(node: Node, algorithms: Sequence[Algorithm]) -> Mapping[Algorithm, Cost | str]:
    """The cost of each, or why it can't be told; two seconds for each."""
    if not algorithms:
        return {}
    found = await version(node)
    if found is None:
        return dict.fromkeys(algorithms, "the image has no openssl")
    has_providers = not found.startswith("OpenSSL 1")
    return {algorithm: await _time(node, algorithm, has_providers) for algorithm in algorithms}


async def _time(node: Node, algorithm: Algorithm, has_providers: bool) -> Cost | str:
    if algorithm.openssl is None:
        return f"OpenSSL has no {algorithm.title}"
    times: dict[int, float] = {}
    for size in _SIZES:
        ran = await node.run(*_command(algorithm, size, has_providers), timeout=_TIMEOUT, check=False)
        speed = read_speed(ran.text)
        if ran.status != 0 or not speed:
            return f"openssl speed said: {(ran.error_text.strip() or 'nothing')[-200:]}"
        times[size] = 1e9 * size / speed
    cost = fit(times)
    return Cost(max(0.0, cost.ns_per_packet), cost.ns_per_byte)


def _command(algorithm: Algorithm, size: int, has_providers: bool) -> list[str]:
    providers = ["-provider", "legacy", "-provider", "default"] if has_providers else []
    kind = {"hash": ["-hmac"], "aead": ["-aead", "-evp"], "skcipher": ["-evp"]}[algorithm.kernel_kind]
    timing = ["-mr", "-seconds", "1", "-bytes", str(size)]
    return ["openssl", "speed", *timing, *providers, *kind, algorithm.openssl or ""]


def read_speed(text: str) -> float | None:
    """Bytes per second, from what `openssl speed -mr` prints for one algorithm and one size."""
    found = _SPEED.search(text)
    return float(found[1]) if found else None
