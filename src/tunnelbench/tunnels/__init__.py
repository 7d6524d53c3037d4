"""Every VPN, found by looking which modules are here: adding one is adding a file."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from tunnelbench.tunnels.base import Tunnel


@cache
def all_tunnels() -> Mapping[str, Tunnel]:
    """Every VPN by name: those without encryption first, then in alphabetical order."""
    found = [
        module.TUNNEL
        for entry in pkgutil.iter_modules(__path__)
        if hasattr(module := importlib.import_module(f"{__name__}.{entry.name}"), "TUNNEL")
    ]
    found.sort(key=_place)
    return {tunnel.name: tunnel for tunnel in found}


def _place(tunnel: Tunnel) -> tuple[bool, bool, str]:
    encrypts = any(suite.encrypts for suite in tunnel.suites.values())
    return (encrypts, tunnel.name != "open", tunnel.name)
