"""Times the ciphers of a node's kernel through AF_ALG sockets.

An operation takes two system calls, which cost more than most ciphers do. So several sizes are timed, and a
line is laid through them: its slope is what a byte costs. What a packet costs is the line's start, less that
of a cipher that does nothing (a hash that does nothing, for hashes), which takes the same calls.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files

from tunnelbench.ciphers.algorithms import Algorithm
from tunnelbench.ciphers.cost import Cost, fit
from tunnelbench.lab.node import Node

_SECONDS_EACH = 10.0
_MODULES = ("algif_skcipher", "algif_hash", "algif_aead", "crypto_null", "crypto_user")
_IDLE_CIPHER = Algorithm("no cipher", "skcipher", "ecb(cipher_null)")
_IDLE_HASH = Algorithm("no hash", "hash", "digest_null", key_bytes=1)


async def time_in_kernel(node: Node, algorithms: Sequence[Algorithm]) -> Mapping[Algorithm, Cost | str]:
    """The cost of each, or why it can't be told; several seconds of one processor's time."""
    if not algorithms:
        return {}
    idle = (_IDLE_CIPHER, _IDLE_HASH)
    # What is built in, or has no such module, needs none; what is missing is told by what follows.
    await node.run("modprobe", "-a", "-q", *_MODULES, check=False)
    program = (files("tunnelbench.ciphers") / "af_alg.py").read_text("utf-8")
    wanted = [
        [one.kernel_kind, one.kernel_name or "", one.key_bytes, one.iv.hex()] for one in (*idle, *algorithms)
    ]
    ran = await node.run(
        *("python3", "-", json.dumps(wanted)),
        input=program.encode(),
        timeout=_SECONDS_EACH * len(wanted),
        check=False,
    )
    if ran.status != 0:
        return dict.fromkeys(algorithms, f"python3 could not time them: {ran.error_text.strip()[-200:]}")
    idle_cipher, idle_hash, *costs = [read_times(answer) for answer in json.loads(ran.text)]
    return {
        algorithm: _net(algorithm, cost, idle_hash if algorithm.kernel_kind == "hash" else idle_cipher)
        for algorithm, cost in zip(algorithms, costs, strict=True)
    }


def read_times(answer: Mapping[str, float] | str) -> Cost | str:
    """The line through what the program printed for one algorithm; its complaint where it had one."""
    if isinstance(answer, str):
        return answer
    return fit({int(size): time for size, time in answer.items()})


def _net(algorithm: Algorithm, cost: Cost | str, calls: Cost | str) -> Cost | str:
    if isinstance(cost, str):
        return f"its kernel offers no {algorithm.kernel_name} to programs ({cost})"
    if isinstance(calls, str):
        return f"what system calls cost there is not known ({calls})"
    # A byte that no cipher touches is copied, too; that is no part of the cipher.
    return cost.without(calls)
