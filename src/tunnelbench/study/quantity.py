"""Quantities with units, parsed once: durations, sizes, bit rates, sending rates and ratios.

Unit symbols follow the SI brochure (decimal prefixes) and IEC 80000-13 (binary prefixes, `KiB`). A quantity
is written as a number, a space that may be left out, and a unit: `5 s`, `128 KiB`, `10 Mbit/s`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Literal

_NUMBER_AND_UNIT = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*(\S.*?)?\s*", re.ASCII)


@dataclass(frozen=True)
class Dimension:
    """A kind of quantity: its name, its units as multiples of the base unit, and examples for messages."""

    name: str
    units: Mapping[str, Decimal]
    examples: tuple[str, ...]

    @property
    def pattern(self) -> str:
        """Regular expression of what `parse` accepts, for editors (JSON Schema `pattern`)."""
        units = "|".join(re.escape(unit) for unit in self.units)
        return rf"^\s*\+?[0-9]+(\.[0-9]+)?\s*({units})\s*$"

    def parse(self, value: object) -> Decimal:
        """The quantity in base units. Raises ValueError that names the accepted units."""
        if not isinstance(value, str):
            raise ValueError(f"{value!r} is not {self.name} with its unit; {self._accepted()}")
        match = _NUMBER_AND_UNIT.fullmatch(value)
        if match is None:
            raise ValueError(f"'{value}' is not {self.name}; {self._accepted()}")
        number, unit = Decimal(match[1]), match[2]
        if unit is None:
            raise ValueError(f"'{value}' has no unit; {self._accepted()}")
        if unit not in self.units:
            raise ValueError(f"'{value}' has the unknown unit '{unit}'; {self._accepted()}")
        if number < 0:
            raise ValueError(f"'{value}' is negative; {self._accepted()}")
        return number * self.units[unit]

    def _accepted(self) -> str:
        examples = " or ".join(f'"{example}"' for example in self.examples)
        return f"write {self.name} in {', '.join(self.units)}, for example {examples}"


def _units(**units: str) -> Mapping[str, Decimal]:
    return MappingProxyType({name: Decimal(factor) for name, factor in units.items()})


DURATION = Dimension(
    "a duration",
    _units(us="0.000001", ms="0.001", s="1", m="60", min="60", h="3600"),
    ("500 ms", "5 s"),
)
SIZE = Dimension(
    "a size",
    _units(B="1", kB="1000", KiB="1024", MB="1000000", MiB="1048576"),
    ("1400 B", "128 KiB"),
)
_BIT_UNITS = {"bit/s": "1", "kbit/s": "1e3", "Mbit/s": "1e6", "Gbit/s": "1e9"}
BIT_RATE = Dimension("a bit rate", _units(**_BIT_UNITS), ("100 Mbit/s",))
PERCENTAGE = Dimension("a ratio", _units(**{"%": "0.01"}), ("1 %",))
_PACKET_UNITS = ("packets/s", "pps")
SENDING_RATE = Dimension(
    "a sending rate",
    _units(**_BIT_UNITS, **dict.fromkeys(_PACKET_UNITS, "1")),
    ("max", "capacity", "10 Mbit/s", "10000 pps", "100 every 10 ms"),
)
_EVERY = " every "
BURSTS_PATTERN = rf"^\s*[0-9]+{_EVERY}{DURATION.pattern.removeprefix('^')}"
"""Regular expression of what is read as bursts, for editors (JSON Schema `pattern`)."""


@dataclass(frozen=True)
class SendingRate:
    """How fast packets are sent: as fast as possible, or payload bits or packets per second."""

    amount: int | None
    """None means as fast as the sender can."""
    unit: Literal["bit/s", "packets/s"] = "bit/s"

    def bits_per_second(self, payload_bytes: int) -> int | None:
        """Payload bits per second with so many bytes in every packet; None for as fast as possible."""
        if self.amount is None:
            return None
        return self.amount if self.unit == "bit/s" else self.amount * payload_bytes * 8

    def __str__(self) -> str:
        if self.amount is None:
            return "max"
        return format_bit_rate(self.amount) if self.unit == "bit/s" else f"{self.amount} packets/s"


@dataclass(frozen=True)
class Bursts:
    """Packets sent back to back, and again after each interval (RFC 9004)."""

    packets: int
    interval_ns: int
    """From the start of one burst to that of the next."""

    def bits_per_second(self, payload_bytes: int) -> int:
        """Payload bits per second over many bursts with `payload_bytes` bytes in every packet."""
        return round(self.packets * payload_bytes * 8 * 1e9 / self.interval_ns)

    def __str__(self) -> str:
        for unit, nanoseconds in (("s", 10**9), ("ms", 10**6), ("us", 10**3)):
            if self.interval_ns % nanoseconds == 0:
                return f"{self.packets}{_EVERY}{self.interval_ns // nanoseconds} {unit}"
        return f"{self.packets}{_EVERY}{Decimal(self.interval_ns) / 1000:f} us"


@dataclass(frozen=True)
class Capacity:
    """The highest rate within a loss goal, which is to be searched for."""

    def bits_per_second(self, payload_bytes: int) -> None:
        """Nobody knows before the search."""

    def __str__(self) -> str:
        return "capacity"


Rate = SendingRate | Bursts | Capacity
MAXIMUM = SendingRate(None)
CAPACITY = Capacity()


def parse_seconds(value: object) -> float:
    """Seconds from a duration such as `5 s`, `500 ms`, `10m`. Raises ValueError."""
    return float(DURATION.parse(value))


def format_seconds(seconds: float) -> str:
    """A duration as `parse_seconds` reads it, to the last digit: `0.5 s`."""
    return f"{Decimal(repr(seconds)):f} s".replace(".0 s", " s")


def parse_bytes(value: object) -> int:
    """Bytes from a whole number, or a size such as `1400 B`, `128 KiB`. Raises ValueError."""
    if isinstance(value, int) and not isinstance(value, bool):
        if value < 0:
            raise ValueError(f'{value} is negative; write a whole number of bytes or, for example, "128 KiB"')
        return value
    return _whole(SIZE.parse(value), value, "bytes")


def parse_bit_rate(value: object) -> int:
    """Bits per second from a rate such as `100 Mbit/s`, above zero. Raises ValueError."""
    return _positive(_whole(BIT_RATE.parse(value), value, "bits per second"), value)


def format_bit_rate(bits_per_second: int) -> str:
    """A bit rate as `parse_bit_rate` reads it, in the largest unit that leaves a whole number."""
    unit, factor = max(
        (
            (unit, int(factor))
            for unit, factor in BIT_RATE.units.items()
            if bits_per_second % int(factor) == 0
        ),
        key=lambda candidate: candidate[1],
    )
    return f"{bits_per_second // factor} {unit}"


def parse_sending_rate(value: object) -> Rate:
    """A sending rate: `max`, `capacity`, `10 Mbit/s`, `10000 pps`, `100 every 10 ms`. Raises ValueError."""
    if isinstance(value, SendingRate | Bursts | Capacity):
        return value
    if value == "max":
        return MAXIMUM
    if value == "capacity":
        return CAPACITY
    if isinstance(value, str) and _EVERY in value:
        return _parse_bursts(value)
    amount = _positive(_whole(SENDING_RATE.parse(value), value, "bits or packets per second"), value)
    return SendingRate(amount, "packets/s" if str(value).strip().endswith(_PACKET_UNITS) else "bit/s")


def _parse_bursts(value: str) -> Bursts:
    packets, _, interval = value.partition(_EVERY)
    if not packets.strip().isdecimal():
        raise ValueError(f"'{value}' is not a number of packets and an interval, such as '100 every 10 ms'")
    nanoseconds = _whole(DURATION.parse(interval) * 10**9, value, "nanoseconds")
    return Bursts(_positive(int(packets), value), _positive(nanoseconds, value))


def parse_ratio(value: object) -> float:
    """A ratio from 0 to below 1, as a number or as a percentage such as `1 %`. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        ratio = float(PERCENTAGE.parse(value))
    else:
        ratio = float(value)
    if not 0 <= ratio < 1:
        raise ValueError(f"{value} is outside 0 to below 1 (100 %)")
    return ratio


def _whole(amount: Decimal, value: object, what: str) -> int:
    if amount != amount.to_integral_value():
        raise ValueError(f"'{value}' is not a whole number of {what}")
    return int(amount)


def _positive(amount: int, value: object) -> int:
    if amount == 0:
        raise ValueError(f"'{value}' must be above zero")
    return amount
