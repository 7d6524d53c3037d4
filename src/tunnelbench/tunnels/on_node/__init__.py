"""Programs of ours that run on nodes, with the Python and the packages of the node's image."""

from __future__ import annotations

from importlib import resources


def source(name: str) -> bytes:
    """The text of a program, to be placed on a node."""
    return resources.files(__name__).joinpath(name).read_bytes()
