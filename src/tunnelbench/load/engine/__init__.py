"""The product's own load: the traffic engine in the node agents at both ends, a module for each transport."""

from __future__ import annotations

from tunnelbench.load.engine.driver import DRIVER as DRIVER
