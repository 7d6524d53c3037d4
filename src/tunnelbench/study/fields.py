"""The kinds of values in a study file: each read from what TOML has, checked, and described for editors."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, TypeVar, cast

from annotated_types import Gt
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
)

from tunnelbench.study.nearest import advice_on
from tunnelbench.study.quantity import (
    BIT_RATE,
    BURSTS_PATTERN,
    DURATION,
    PERCENTAGE,
    SENDING_RATE,
    SIZE,
    Dimension,
    Rate,
    format_bit_rate,
    format_seconds,
    parse_bit_rate,
    parse_bytes,
    parse_ratio,
    parse_seconds,
    parse_sending_rate,
)
from tunnelbench.study.systems import SIGN, Systems

Level = TypeVar("Level")


def _frozen_list(value: object) -> tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"must be a list, such as [{value!r}]")
    if not value:
        raise ValueError("must name at least one level")
    return tuple(cast(Sequence[object], value))


def _any_list(value: object) -> tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("must be a list of tables")
    return tuple(cast(Sequence[object], value))


def _distinct(levels: tuple[Level, ...]) -> tuple[Level, ...]:
    for index, level in enumerate(levels):
        if level in levels[:index]:
            raise ValueError(f"names '{level}' twice")
    return levels


Levels = Annotated[
    tuple[Level, ...],
    BeforeValidator(_frozen_list),
    AfterValidator(_distinct),
    Field(json_schema_extra={"minItems": 1, "uniqueItems": True}),
]
"""The levels of a factor: a list of at least one, none twice."""

Tables = Annotated[tuple[Level, ...], BeforeValidator(_any_list)]
"""A list of tables, which may be empty."""

_NAME = r"[a-z0-9][a-z0-9._-]*"
_NAME_PATTERN = rf"^{_NAME}$"


def _plain_name(name: str) -> str:
    if re.fullmatch(_NAME_PATTERN, name) is None:
        raise ValueError(
            f"'{name}' must be lower-case letters, digits, '.', '_' and '-', the first a letter or digit"
        )
    return name


def _written(dimension: Dimension) -> dict[str, Any]:
    return {"type": "string", "pattern": dimension.pattern, "examples": list(dimension.examples)}


Name = Annotated[
    str, AfterValidator(_plain_name), WithJsonSchema({"type": "string", "pattern": _NAME_PATTERN})
]


def parse_systems(level: str) -> str:
    """A level of operating systems, as a treatment has it. Raises ValueError."""
    first, *others = level.split(SIGN)
    if len(others) > 1:
        raise ValueError(
            f"'{level}' names {len(others) + 1} images; there are two sides, such as '{_TWO_SIDES}'"
        )
    return str(Systems(_plain_name(first), _plain_name(others[0] if others else first)))


_TWO_SIDES = "bookworm+trixie"

SystemsLevel = Annotated[
    str,
    AfterValidator(parse_systems),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": rf"^{_NAME}({re.escape(SIGN)}{_NAME})?$",
            "examples": ["bookworm", _TWO_SIDES],
        }
    ),
]
"""An image for both sides, or two joined by `SIGN`: that of the first side, that of the second."""

CONTENTS = ("random", "zeros", "text")
"""Payload by what it is; any other is read from a file."""


def _content(content: str) -> str:
    if content in CONTENTS:
        return content
    path = PurePosixPath(content)
    if path.is_absolute() or ".." in path.parts:
        raise ValueError(f"'{content}' must be a file beside the study or below it")
    if "/" in content or "." in content:
        return content
    advice = advice_on(content, CONTENTS, "contents")
    raise ValueError(f"unknown content '{content}'. {advice} A file is named by a path: './{content}'.")


ContentLevel = Annotated[str, AfterValidator(_content)]
Seconds = Annotated[
    float,
    BeforeValidator(parse_seconds),
    PlainSerializer(format_seconds),
    WithJsonSchema(_written(DURATION)),
]
AUTO = "auto"


def _seconds_or_auto(value: object) -> object:
    return AUTO if value == AUTO else parse_seconds(value)


SecondsOrAuto = Annotated[
    float | Literal["auto"],
    BeforeValidator(_seconds_or_auto),
    PlainSerializer(lambda value: AUTO if value == AUTO else format_seconds(value)),
    WithJsonSchema({"anyOf": [{"const": AUTO}, _written(DURATION)]}),
]
PositiveSeconds = Annotated[Seconds, Gt(0)]
BitRate = Annotated[
    int,
    BeforeValidator(parse_bit_rate),
    PlainSerializer(format_bit_rate),
    WithJsonSchema(_written(BIT_RATE)),
]
Ratio = Annotated[
    float,
    BeforeValidator(parse_ratio),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "minimum": 0, "exclusiveMaximum": 1}, _written(PERCENTAGE)]}
    ),
]
Bytes = Annotated[
    int,
    BeforeValidator(parse_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, _written(SIZE)]}),
]
SendingRateLevel = Annotated[
    Rate,
    PlainValidator(parse_sending_rate),
    PlainSerializer(str),
    WithJsonSchema(
        {
            **_written(SENDING_RATE),
            "pattern": f"^max$|^capacity$|{SENDING_RATE.pattern}|{BURSTS_PATTERN}",
        }
    ),
]


class Frozen(BaseModel, frozen=True):
    """A value: immutable, comparable, strict about types and unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", allow_inf_nan=False, use_attribute_docstrings=True)
