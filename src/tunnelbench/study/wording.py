"""Points, factors and metrics in words that readers know, as sentences and tables call them."""

from __future__ import annotations

from collections.abc import Mapping

from tunnelbench.study.points import Point
from tunnelbench.study.quantity import Bursts, Capacity, SendingRate
from tunnelbench.study.vocabulary import Background

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
    "offered_mbit": "offered rate",
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

_UNITS = {"payload_bytes": " bytes", "mtu": " bytes", "offered_mbit": " Mbit/s"}
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
    unit = _UNITS.get(factor, "")
    return shown if shown in _LEVELS.values() else f"{factor_words(factor)} {shown}{unit}"


def in_percent(share: float) -> str:
    """`15 %` for 0.15, as sentences write it."""
    return f"{100 * share:.0f} %"


def metric_words(name: str) -> str:
    """`median one-way delay` for `latency_p50`."""
    return _METRICS.get(name, name.replace("_", " "))


def point_title(point: Point) -> str:
    """A point in words: `UDP over IPv4, 1400-byte datagrams as fast as possible, forward, engine`.

    Levels that go without saying are left out.
    """
    levels = ((factor, level) for factor, level in point.unusual.items() if factor != "background")
    unusual = (_UNUSUAL[factor].format(level) for factor, level in levels)
    direction = {None: None, "both": "in both directions"}.get(point.direction, point.direction)
    over = f"{level_name(point.transport)} over {level_name(point.ip)}"
    beside = None if point.background == "none" else background_words(point.background)
    parts = [over, _traffic(point), *unusual, direction, beside, point.load]
    return ", ".join(part for part in parts if part is not None)


def pace(point: Point) -> list[str]:
    """How fast packets are sent, in words; none where that is not given."""
    match point.rate:
        case None:
            return []
        case Bursts(packets, _):
            return [f"in bursts of {packets}", str(point.rate).removeprefix(f"{packets} ")]
        case SendingRate(None):
            return ["one after the other" if point.transport == "icmp" else "as fast as possible"]
        case Capacity():
            return ["at the highest rate within the loss goal"]
        case rate:
            return [f"at {rate}"]


def background_words(background: Background) -> str:
    """What fills the path meanwhile: `alone`, `beside a TCP stream in reverse`."""
    return _BACKGROUNDS[background]


_UNUSUAL = {
    "streams": "{} streams",
    "content": "payload of {}",
    "sending": "sent {}",
    "congestion_control": "{} congestion control",
}

_BACKGROUNDS: Mapping[Background, str] = {
    "none": "alone",
    "tcp": "beside a TCP stream",
    "tcp-reverse": "beside a TCP stream in reverse",
    "tcp-both": "beside a TCP stream both ways",
}


def _traffic(point: Point) -> str:
    size = None if point.payload_bytes is None else _size(point.payload_bytes)
    match point.profile:
        case "request-response":
            return f"{size} requests and responses"
        case "connect-request-response":
            return f"a connection for each {size} request and response"
        case "constant":
            packets = {"tcp": "writes", "udp": "datagrams", "icmp": "echo requests"}[point.transport]
            return " ".join([*([size] if size else []), packets, *pace(point)])
        case profile:
            return " ".join([*([size] if size else []), profile, *pace(point)])


def _size(count: int) -> str:
    if count >= 1024 and count % 1024 == 0:
        return f"{count // 1024} KiB"
    return f"{count}-byte"
