"""A laboratory that measures what a VPN costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tunnelbench.notebook import Campaign

__version__ = "0.1.0"


def open(directory: str | Path) -> Campaign:
    """A campaign for notebooks and scripts; see `tunnelbench.notebook`.

    Raises UserError if the directory holds no campaign.
    """
    # Here, so that commands that need no frames don't load what makes them.
    from tunnelbench.notebook import Campaign

    return Campaign(directory)
