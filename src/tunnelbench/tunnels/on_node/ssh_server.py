# pyright: basic, reportMissingImports=false
"""An SSH server made of AsyncSSH, for ciphers that OpenSSH's server no longer has; it runs on a gateway.

Its one argument is a file of JSON. The client's key gives the right to make tun and tap devices and to have
connections forwarded, and to no program. It tells on standard error when it listens, and what each key
exchange agreed on, in the words of OpenSSH. Made for the Python of every release that images can have.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import pathlib
import struct
import sys
from typing import Any

import asyncssh

EXCHANGED = "Completed key exchange"
LARGEST_FRAME = 65_536
ADDRESS_FAMILY_BYTES = 4
"""Before each packet of a tun device in a channel (OpenSSH's PROTOCOL, 2.3)."""

# linux/if_tun.h
TUNSETIFF = 0x400454CA
IFF_TUN = 1
IFF_TAP = 2
IFF_NO_PI = 0x1000

Session: Any = getattr(asyncssh, "SSHTunTapSession", object)
"""What sessions of devices are based on; older releases of AsyncSSH have none and never ask for one."""

TOLD = (EXCHANGED, "Accepted layer", "Auth for user", "failed", "Failed", "denied")
"""What of AsyncSSH's log is told."""


async def main(options: dict[str, Any]) -> None:
    """Serves until it is ended."""
    log = logging.getLogger("asyncssh")
    log.setLevel(logging.DEBUG)
    asyncssh.set_debug_level(1)
    server = await asyncssh.listen(
        options["address"],
        options["port"],
        reuse_address=True,
        server_factory=lambda: Server(log),
        process_factory=idle,
        encoding=None,
        line_editor=False,
        server_host_keys=[options["host_key"]],
        authorized_client_keys=options["authorized_keys"],
        encryption_algs=[options["cipher"]],
        mac_algs=[options["mac"]],
        compression_algs=[options["compression"]],
    )
    tell(f"Server listening on {options['address']} port {options['port']}, AsyncSSH {asyncssh.__version__}.")
    await server.wait_closed()


class Server(asyncssh.SSHServer):
    """What one client may do."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._teller: logging.Handler | None = None

    def connection_made(self, connection: asyncssh.SSHServerConnection) -> None:
        self._teller = Teller(connection)
        self._log.addHandler(self._teller)

    def connection_lost(self, reason: Exception | None) -> None:
        if self._teller:
            self._log.removeHandler(self._teller)

    def connection_requested(self, *_where: object) -> bool:
        return True

    def tun_requested(self, unit: int | None) -> Device:
        return Device(f"tun{unit or 0}", IFF_TUN)

    def tap_requested(self, unit: int | None) -> Device:
        return Device(f"tap{unit or 0}", IFF_TAP)


class Device(Session):
    """A tun or tap device whose packets are carried by a channel.

    AsyncSSH has one of its own, but there the first packet for a device that is not up ends the connection.
    """

    def __init__(self, name: str, kind: int) -> None:
        self._file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self._file, TUNSETIFF, struct.pack("16sH", name.encode(), kind | IFF_NO_PI))
        self._uncounted = ADDRESS_FAMILY_BYTES if kind == IFF_TUN else 0
        self._loop = asyncio.get_running_loop()

    def connection_made(self, channel: asyncssh.SSHTunTapChannel) -> None:
        self._channel = channel
        self.resume_writing()

    def data_received(self, data: bytes, _datatype: int | None) -> None:
        # A device that is down, or has no room, drops what comes.
        with contextlib.suppress(OSError):
            os.write(self._file, data)
        # AsyncSSH takes the address family off a packet before it counts it, the client does not. What is
        # never given back to the client's window adds up until no packet fits in it any more.
        self._channel._recv_window -= self._uncounted

    def pause_writing(self) -> None:
        self._loop.remove_reader(self._file)

    def resume_writing(self) -> None:
        self._loop.add_reader(self._file, self._send)

    def connection_lost(self, _reason: Exception | None) -> None:
        self._loop.remove_reader(self._file)
        os.close(self._file)

    def _send(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self._channel.write(os.read(self._file, LARGEST_FRAME))


class Teller(logging.Handler):
    """Tells of a connection what it logs, and what was negotiated whenever it has new keys."""

    def __init__(self, connection: asyncssh.SSHServerConnection) -> None:
        super().__init__()
        self._connection = connection

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if EXCHANGED in message:
            for direction, end in (("client->server", "recv"), ("server->client", "send")):
                cipher, mac, compression = (
                    self._connection.get_extra_info(f"{end}_{part}")
                    for part in ("cipher", "mac", "compression")
                )
                tell(f"kex: {direction} cipher: {cipher} MAC: {mac} compression: {compression}")
        if any(part in message for part in TOLD):
            tell(message)


async def idle(process: asyncssh.SSHServerProcess) -> None:
    """Stands for the program of a session until the client ends it."""
    tell("Starting session")
    await process.stdin.read()
    process.exit(0)


def tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    asyncio.run(main(json.loads(pathlib.Path(sys.argv[1]).read_text())))
