"""Factors and metrics as sentences and tables call them: in words that readers know, and never as columns."""

from __future__ import annotations

_FACTORS = {
    "campaign_round": "round",
    "vpn": "VPN",
    "options": "options of the VPN",
    "outer_ip": "IP version between the gateways",
    "gateway_os": "gateways' system",
    "host_os": "hosts' system",
    "client_os": "clients' system",
    "router_os": "routers' system",
    "server_os": "server's system",
    "os": "operating system",
    "mtu": "MTU",
    "ip": "IP version",
    "payload_bytes": "payload",
    "congestion_control": "congestion control",
    "load": "load tool",
}

_METRICS = {
    "latency_p50": "median one-way delay",
    "round_trip": "round trip",
    "round_trip_p50": "median round trip",
    "transactions_per_second": "transactions per second",
    "loss_percent": "loss",
    "cv_percent": "coefficient of variation, %",
    "decrease_percent": "decrease, %",
    "throughput_difference": "difference of throughputs",
    "throughput_spread": "spread of throughputs",
}

_LEVELS = {"ipv4": "IPv4", "ipv6": "IPv6", "tcp": "TCP", "udp": "UDP", "icmp": "ICMP"}


def factor_words(name: str) -> str:
    """`payload` for `payload_bytes`."""
    return _FACTORS.get(name, name.replace("_", " "))


def level_name(level: object) -> str:
    """A level as sentences write it: `IPv4` for `ipv4`."""
    shown = f"{level:g}" if isinstance(level, float) else str(level)
    return _LEVELS.get(shown, shown)


def level_words(factor: str, level: object) -> str:
    """A level with its factor: `payload 1400 bytes`, `gateways' system bookworm`, `TCP`."""
    shown = level_name(level)
    unit = " bytes" if factor in ("payload_bytes", "mtu") else ""
    return shown if shown in _LEVELS.values() else f"{factor_words(factor)} {shown}{unit}"


def metric_words(name: str) -> str:
    """`median one-way delay` for `latency_p50`."""
    return _METRICS.get(name, name.replace("_", " "))
