"""A laboratory that measures what a VPN costs."""

__version__ = "0.1.0"
