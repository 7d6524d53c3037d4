"""How the factors and levels of a published study stand in ours.

The papers' operating systems and ciphers can't all be had. A study that repeats a paper says what stands for
what; where it says nothing, a level of the same name in a column of the same name stands for itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from tunnelbench.study.fields import Frozen, Levels, Name
from tunnelbench.study.nearest import advice_on
from tunnelbench.study.points import Point
from tunnelbench.study.treatment import Treatment

COLUMNS = ("runtime", *Treatment.model_fields, *Point.model_fields)
"""What a level can select by: the columns by which results are told apart."""

Selection = Mapping[str, Levels[str | int]]
"""Allowed values by column; what has one of them in each column is selected."""


def _by_text(table: object) -> object:
    """Levels by name. A number is the name of a level too; TOML has text as keys anyway."""
    if not isinstance(table, dict):
        raise ValueError('must be a table of levels, such as { "aes-128" = { suite = ["aes128-sha1"] } }')
    return {str(level): selection for level, selection in cast(dict[object, object], table).items()}


class Correspondence(Frozen, frozen=True):
    """Which of our results stand for which levels of a paper."""

    source: Name
    """The published study, by name."""
    levels: Mapping[str, Annotated[Mapping[str, Selection], BeforeValidator(_by_text)]] = {}
    """By the paper's factor and level: values by column, such as `{ vpn = ["ipsec-manual"] }`."""
    notes: Mapping[str, str] = {}
    """By the paper's factor: what stands for it here, or why nothing does."""

    def selection(self, factor: str, level: str | float) -> Selection | None:
        """What stands for a level; None where nothing can."""
        named = self.levels.get(factor, {}).get(str(level))
        if named is not None:
            return named
        if isinstance(level, float) or factor not in COLUMNS or not is_value_of(factor, level):
            return None
        return {factor: (level,)}


def known_selection(selection: Selection) -> Selection:
    """The same, of what a study can vary. Raises ValueError that names what is unknown."""
    for column, values in selection.items():
        if column == "runtime" or column not in COLUMNS:
            advice = advice_on(column, [name for name in COLUMNS if name != "runtime"], "levels to select by")
            raise ValueError(f"nothing is called '{column}'. {advice}")
        if wrong := [value for value in values if not is_value_of(column, value)]:
            raise ValueError(f"{column} can't be {wrong[0]!r}")
    return selection


def is_value_of(column: str, value: str | int) -> bool:
    """Whether a column can have a value at all, whatever names there are to be had."""
    try:
        _ADAPTERS[column].validate_python(value, strict=True)
    except ValidationError:
        return False
    return True


_ADAPTERS: Mapping[str, TypeAdapter[Any]] = {
    "runtime": TypeAdapter(Literal["namespace", "kernel", "machine"]),
    **{
        name: TypeAdapter(field.rebuild_annotation())
        for model in (Treatment, Point)
        for name, field in model.model_fields.items()
    },
}
