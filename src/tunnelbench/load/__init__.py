"""Load tools: each module that offers a `DRIVER` is one, so that adding a tool is adding a file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from types import MappingProxyType

from tunnelbench.load.base import LoadDriver


@cache
def drivers() -> Mapping[str, LoadDriver]:
    """All load drivers by name, in the order of their names."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found: list[LoadDriver] = [module.DRIVER for module in modules if hasattr(module, "DRIVER")]
    by_name = {driver.name: driver for driver in sorted(found, key=lambda driver: driver.name)}
    if len(by_name) != len(found):
        raise ValueError(f"two load drivers share a name: {sorted(driver.name for driver in found)}")
    return MappingProxyType(by_name)
