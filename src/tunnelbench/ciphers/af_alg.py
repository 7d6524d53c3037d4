"""Times the kernel's ciphers; runs by itself with any Python from 3.9 on a node, and prints JSON.

Its argument is a list in JSON of [kind, name, key bytes, IV in hexadecimal]. For each it prints the time of
one operation in ns by its number of bytes, or in a text why there is none.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable

SIZES = (256, 1024, 2048, 4096, 8192)
BATCH_NS = 2_000_000
"""Shorter than what a busy machine gives a process at a time."""
BATCHES = 40
TAG = 16
ASSOCIATED = 8


def main() -> None:
    """Times what the argument asks for."""
    print(json.dumps([times(*wanted) for wanted in json.loads(sys.argv[1])]))


def times(kind: str, name: str, key_bytes: int, iv: str) -> dict[int, float] | str:
    """ns by number of bytes."""
    try:
        with socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET) as algorithm:
            algorithm.bind((kind, name))
            if key_bytes or kind == "skcipher":
                algorithm.setsockopt(socket.SOL_ALG, socket.ALG_SET_KEY, os.urandom(key_bytes))
            if kind == "aead":
                algorithm.setsockopt(socket.SOL_ALG, socket.ALG_SET_AEAD_AUTHSIZE, None, TAG)
            operation, _ = algorithm.accept()
            with operation:
                return {size: fastest(once(kind, operation, bytes.fromhex(iv), size)) for size in SIZES}
    except OSError as error:
        return str(error.strerror)


def once(kind: str, operation: socket.socket, iv: bytes, size: int) -> Callable[[], None]:
    """One operation on a packet of this many bytes, in two system calls."""
    if kind == "hash":
        return lambda: digest(operation, bytes(size))
    if kind == "aead":
        return lambda: seal(operation, [bytes(ASSOCIATED + size)], iv, ASSOCIATED + size + TAG)
    return lambda: encrypt(operation, [bytes(size)], iv, size)


def digest(operation: socket.socket, packet: bytes) -> None:
    """An integrity check value."""
    operation.send(packet)
    operation.recv(64)


def encrypt(operation: socket.socket, packet: list[bytes], iv: bytes, size: int) -> None:
    """With a cipher alone; asked for more than there is, the kernel would wait."""
    if iv:
        operation.sendmsg_afalg(packet, op=socket.ALG_OP_ENCRYPT, iv=iv)
    else:
        operation.sendmsg_afalg(packet, op=socket.ALG_OP_ENCRYPT)
    operation.recv(size)


def seal(operation: socket.socket, packet: list[bytes], iv: bytes, size: int) -> None:
    """With a cipher that authenticates."""
    operation.sendmsg_afalg(packet, op=socket.ALG_OP_ENCRYPT, iv=iv, assoclen=ASSOCIATED)
    operation.recv(size)


def fastest(operation: Callable[[], None]) -> float:
    """ns for one, in the batch in which the machine disturbed it least."""
    operation()
    best = float("inf")
    for _ in range(BATCHES):
        done, began, now = 0, time.perf_counter_ns(), 0
        while now < began + BATCH_NS:
            operation()
            done += 1
            now = time.perf_counter_ns()
        best = min(best, (now - began) / done)
    return best


main()
