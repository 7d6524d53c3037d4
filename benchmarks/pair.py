"""Two network namespaces joined by a veth pair, for tools that know nothing of labs; needs root.

Nothing of them is left behind: the names carry this process's id, and leaving the context deletes both.
"""

from __future__ import annotations

import os
import resource
import subprocess
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

SENDER_ADDRESS = "10.99.0.1"
RECEIVER_ADDRESS = "10.99.0.2"
_OFFLOADS = ("tso", "gso", "gro", "tx")


@dataclass(frozen=True)
class Pair:
    """The two ends: `sender` and `receiver` are names of namespaces."""

    sender: str
    receiver: str

    def start(self, namespace: str, *arguments: str) -> Program:
        """Starts a program in one of the namespaces."""
        output = tempfile.TemporaryFile()  # noqa: SIM115 (it lives as long as the program's text is asked for)
        command = ["ip", "netns", "exec", namespace, *arguments]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT)
        return Program(process, output)

    def run(self, namespace: str, *arguments: str) -> str:
        """Runs a program to its end and returns what it printed."""
        program = self.start(namespace, *arguments)
        program.wait()
        return program.text

    def delivered_datagrams(self) -> int:
        """UDP datagrams that programs of the receiving namespace have read so far, by its kernel's count."""
        table = self.run(self.receiver, "cat", "/proc/net/snmp").splitlines()
        names, values = (line.split() for line in table if line.startswith("Udp:"))
        return int(values[names.index("InDatagrams")])

    def received_packets(self) -> int:
        """Packets that came in at the receiving end so far, all of its interface."""
        return int(self.run(self.receiver, "cat", "/sys/class/net/wire/statistics/rx_packets"))


@dataclass
class Program:
    """A program under way, and what it cost once it has ended."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]
    processor_seconds: float = 0.0

    def wait(self) -> None:
        """Waits for the end; then `processor_seconds` is known, of all its threads."""
        if self.process.returncode is not None:
            return
        _, status, usage = os.wait4(self.process.pid, 0)
        self._ended(status, usage)

    def stop(self) -> None:
        """Asks it to end, and waits for that."""
        if self.process.returncode is None:
            self.process.terminate()
            self.wait()

    def _ended(self, status: int, usage: resource.struct_rusage) -> None:
        self.process.returncode = os.waitstatus_to_exitcode(status)
        self.processor_seconds = usage.ru_utime + usage.ru_stime

    @property
    def text(self) -> str:
        """All that it printed so far."""
        self.output.seek(0)
        return self.output.read().decode(errors="replace")


@contextmanager
def pair(*, offloads: bool = False, mtu: int = 1500) -> Generator[Pair]:
    """Makes the two namespaces; with `offloads` segments stay whole between them, as on one machine."""
    sender, receiver = f"tb-bench-{os.getpid()}-a", f"tb-bench-{os.getpid()}-b"
    for name in (sender, receiver):
        _ip("netns", "add", name)
    try:
        _ip("link", "add", "wire", "mtu", str(mtu), "netns", sender, "type", "veth", "peer", "name", "wire",
            "mtu", str(mtu), "netns", receiver)  # fmt: skip
        for name, address in ((sender, SENDER_ADDRESS), (receiver, RECEIVER_ADDRESS)):
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "wire")
            _ip("-n", name, "link", "set", "wire", "up")
            _ip("-n", name, "link", "set", "lo", "up")
            if not offloads:
                switches = [word for offload in _OFFLOADS for word in (offload, "off")]
                _call("ip", "netns", "exec", name, "ethtool", "-K", "wire", *switches)
        time.sleep(0.5)
        yield Pair(sender, receiver)
    finally:
        for name in (sender, receiver):
            _ip("netns", "delete", name)


def rooted(root: Path, *arguments: str) -> tuple[str, ...]:
    """The command that runs a program of another root tree."""
    return ("chroot", str(root), *arguments)


def _ip(*arguments: str) -> None:
    _call("ip", *arguments)


def _call(*arguments: str) -> None:
    subprocess.run(arguments, check=True, capture_output=True)
