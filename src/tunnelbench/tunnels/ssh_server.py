"""The server of an SSH connection: OpenSSH's, or one of AsyncSSH for ciphers that this no longer has."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from tunnelbench.lab.features import Feature, Needs
from tunnelbench.lab.program import Program
from tunnelbench.tunnels.base import Gateway, Variant
from tunnelbench.tunnels.daemons import place_files, start_daemon
from tunnelbench.tunnels.on_node import source
from tunnelbench.tunnels.ssh_log import server_log
from tunnelbench.tunnels.ssh_suites import Terms, suite_of, terms

PORT = 22

# Before sshd talks to strangers it becomes a user of its own. Whoever runs a lab as an ordinary user has only
# one identity to give unless the system grants more.
_SECOND_USER = Feature(
    "a second user for sshd (subuid(5) grants some)",
    ("setpriv", "--reuid", "sshd", "--regid", "nogroup", "--clear-groups", "true"),
)
_ASYNCSSH = Feature("AsyncSSH (python3-asyncssh)", ("python3", "-c", "import asyncssh"), user_space=True)


@dataclass(frozen=True)
class Listener:
    """A kind of server: how it is started, and what it prints."""

    accepted: str
    """A regular expression for the line that says that the client is who it should be."""
    new_keys: str
    """That it now receives with new keys."""
    device: str
    """That it made a tun or tap device."""


OPENSSH = Listener("Accepted publickey", "SSH2_MSG_NEWKEYS received", "Tunnel forwarding using interface")
ASYNCSSH = Listener("Auth for user root succeeded", "Completed key exchange", "Accepted layer")


def listener_for(variant: Variant) -> Listener:
    """The kind of server that has a variant's suite."""
    return ASYNCSSH if suite_of(variant).is_legacy else OPENSSH


def server_needs(variant: Variant) -> Needs:
    """The server's program, and what it can't be without."""
    if suite_of(variant).is_legacy:
        return Needs(frozenset({"python3"}), frozenset({_ASYNCSSH}))
    return Needs(frozenset({"sshd"}), frozenset({_SECOND_USER}))


async def start_server(
    end: Gateway,
    variant: Variant,
    directory: str,
    keys: Mapping[str, bytes],
    environment: Mapping[str, str],
    cleanup: AsyncExitStack,
) -> Program:
    """Starts a server that waits for connections; `keys` are the files `host_key` and `authorized_keys`.

    It prints `Server listening` when it does.
    """
    if suite_of(variant).is_legacy:
        options = json.dumps(_asyncssh_options(end, terms(variant), directory)).encode()
        files = {"server.py": source("ssh_server.py"), "server.json": options}
        await place_files(end.node, directory, {**keys, **files}, cleanup)
        command = ("python3", f"{directory}/server.py", f"{directory}/server.json")
        return await start_daemon(end.node, cleanup, *command, environment=environment)
    # Here sshd locks itself up before it talks to strangers.
    await place_files(end.node, "/run/sshd", {}, cleanup)
    log = await server_log(end.node)
    config = _openssh_options(end, (*terms(variant).options, *log.options), directory)
    await place_files(end.node, directory, {**keys, "sshd_config": config}, cleanup)
    command = log.command("/usr/sbin/sshd", "-D", "-e", "-f", f"{directory}/sshd_config")
    return await start_daemon(end.node, cleanup, *command)


def _openssh_options(end: Gateway, more: Sequence[str], directory: str) -> bytes:
    options = (
        f"ListenAddress {end.outside}",
        f"Port {PORT}",
        f"HostKey {directory}/host_key",
        f"AuthorizedKeysFile {directory}/authorized_keys",
        "PidFile none",
        "UsePAM no",
        "PermitRootLogin prohibit-password",
        "AuthenticationMethods publickey",
        "PermitTunnel yes",
        "AllowTcpForwarding yes",
        *more,
    )
    return "".join(f"{option}\n" for option in options).encode()


def _asyncssh_options(end: Gateway, agreed: Terms, directory: str) -> Mapping[str, str | int | None]:
    return {
        "address": str(end.outside),
        "port": PORT,
        "host_key": f"{directory}/host_key",
        "authorized_keys": f"{directory}/authorized_keys",
        "cipher": agreed.cipher,
        "mac": agreed.mac,
        "compression": agreed.compression,
    }
