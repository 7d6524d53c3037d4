"""What both ends of an SSH connection say was negotiated, from their logs."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tunnelbench.tunnels.base import ReadBack
from tunnelbench.tunnels.ssh_suites import suite_named

# OpenSSH puts its level first, and before lines that it was asked for by function where they come from.
_SOURCE = r"^(?:debug1: )?(?:\S+ \([^)]*\): )?"
_NEGOTIATED = re.compile(
    _SOURCE + r"kex: (server->client|client->server) cipher: (\S+) MAC: (\S+) compression: (\S+).*", re.M
)
_KEY_EXCHANGE = re.compile(_SOURCE + r"kex: algorithm: (\S+)", re.M)
_CLIENT = re.compile(_SOURCE + r"Local version string SSH-2\.0-([^\r\n]+)", re.M)
_SERVER = re.compile(_SOURCE + r"Remote protocol version 2\.0, remote software version ([^\r\n]+)", re.M)


def read_logs(client: str, server: str) -> ReadBack:
    """The suite in use and what else was negotiated, if both ends say the same."""
    agreed = ReadBack.agreed([read_log(client), read_log(server)])
    return ReadBack(agreed.suite, agreed.text, {**agreed.facts, **_told_by_client(client)})


def read_log(log: str) -> ReadBack:
    """The suite of the newest keys, if one end's log tells of the same for both directions."""
    newest = {made[1]: made for made in _NEGOTIATED.finditer(log)}
    lines = "\n".join(made[0].rstrip() for made in newest.values())
    agreed = {made.groups()[1:] for made in newest.values()}
    if len(newest) != 2 or len(agreed) != 1:
        return ReadBack(None, lines)
    [(cipher, mac, compression)] = agreed
    return ReadBack(suite_named(cipher, mac), lines, {"MAC": mac, "compression": compression})


def _told_by_client(log: str) -> Mapping[str, str]:
    """The key exchange of the newest keys, and which programs the ends are."""
    told = {"key exchange": _KEY_EXCHANGE, "client": _CLIENT, "server": _SERVER}
    found = {name: pattern.findall(log) for name, pattern in told.items()}
    return {name: matches[-1].strip() for name, matches in found.items() if matches}
