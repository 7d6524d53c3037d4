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
_PACKET_UNIT = "packets/s"
SENDING_RATE = Dimension(
    "a sending rate",
    _units(**_BIT_UNITS, **{_PACKET_UNIT: "1"}),
    ("max", "10 Mbit/s"),
)


@dataclass(frozen=True)
class SendingRate:
    """How fast datagrams are sent: as fast as possible, or payload bits or datagrams per second."""

    amount: int | None
    """None means as fast as the sender can."""
    unit: Literal["bit/s", "packets/s"] = "bit/s"

    def bits_per_second(self, payload_bytes: int) -> int | Literal["max"]:
        """Payload bits per second when every datagram carries `payload_bytes` bytes of payload."""
        if self.amount is None:
            return "max"
        return self.amount if self.unit == "bit/s" else self.amount * payload_bytes * 8

    def __str__(self) -> str:
        return "max" if self.amount is None else f"{self.amount} {self.unit}"


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


def parse_sending_rate(value: object) -> SendingRate:
    """A UDP sending rate: `max`, `10 Mbit/s` or `10000 packets/s`. Raises ValueError."""
    if isinstance(value, SendingRate):
        return value
    if value == "max":
        return SendingRate(None)
    amount = _positive(_whole(SENDING_RATE.parse(value), value, "bits or packets per second"), value)
    return SendingRate(amount, "packets/s" if str(value).strip().endswith(_PACKET_UNIT) else "bit/s")


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
