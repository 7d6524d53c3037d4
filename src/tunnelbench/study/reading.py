"""Reading a study from TOML: text in, a checked `Study` or an error that says where and what is wrong."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from tunnelbench.errors import UserError
from tunnelbench.study.catalogue import Catalogue
from tunnelbench.study.checks import sentences, unknown_names, vain_levels
from tunnelbench.study.contents import wrong_contents
from tunnelbench.study.correspondence_checks import wrong_correspondence
from tunnelbench.study.locator import KeyPath, line_of, locate
from tunnelbench.study.model import Study
from tunnelbench.study.nearest import advice_on


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a study file."""

    source: str
    """The file."""
    line: int
    """Counted from 1."""
    key: str
    """The key in question, such as `factors.mtu[0]`; empty for the file as a whole."""
    message: str

    def __str__(self) -> str:
        key = f"{self.key}: " if self.key else ""
        return f"{self.source}:{self.line}: {key}{self.message}"


class StudyError(UserError):
    """A study that can't be read, with every problem found, in the order of lines."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = tuple(sorted(dict.fromkeys(problems), key=lambda problem: problem.line))
        super().__init__("\n".join(map(str, self.problems)))


def read_study(path: Path, catalogue: Catalogue) -> Study:
    """The study in a TOML file. Raises UserError if the file can't be read, StudyError if it is wrong."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not a text file in UTF-8 ({error.reason} at byte {error.start})") from error
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    return parse_study(text, str(path), catalogue, path.parent)


def parse_study(text: str, source: str, catalogue: Catalogue, folder: Path | None = None) -> Study:
    """The study in a TOML text; `source` names it in messages, `folder` has the files that it names.

    Raises StudyError with file, line, key and the nearest valid name for each problem: wrong TOML, unknown
    keys and levels, wrong units, names that the catalogue doesn't have, and levels that nothing can measure.
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError((_syntax_problem(error, text, source),)) from error
    lines = locate(text)
    try:
        study = Study.model_validate(document)
    except ValidationError as error:
        problems = (_problem(_path(detail), _message(detail), lines, source) for detail in error.errors())
        raise StudyError(tuple(problems)) from error
    wrong = unknown_names(study, catalogue) or vain_levels(study, catalogue)
    wrong += wrong_correspondence(study, catalogue)
    wrong += [] if folder is None else wrong_contents(study, folder)
    if wrong:
        raise StudyError(tuple(_problem(path, message, lines, source) for path, message in wrong))
    return study


def _syntax_problem(error: tomllib.TOMLDecodeError, text: str, source: str) -> Problem:
    place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", str(error))
    line = int(place[1]) if place and place[1] else text.count("\n") + 1
    message = str(error)[: place.start()] if place else str(error)
    return Problem(source, line, "", f"not valid TOML: {message}")


def _problem(path: KeyPath, message: str, lines: dict[KeyPath, int], source: str) -> Problem:
    if path[:3] not in lines and (short := path[:2] + path[3:]) in lines:
        path = short  # One list stands for a table of them.
    place, line = line_of(path, lines)
    return Problem(source, line, _written(place), message)


def _path(detail: ErrorDetails) -> KeyPath:
    return tuple(detail["loc"])


def _message(detail: ErrorDetails) -> str:
    match detail["type"]:
        case "extra_forbidden":
            key = str(detail["loc"][-1])
            return sentences(f"unknown key '{key}'", advice_on(key, _valid_keys(_path(detail)[:-1]), "keys"))
        case "missing":
            return f"'{detail['loc'][-1]}' is missing"
        case "literal_error":
            level = str(detail["input"])
            valid = re.findall(r"'([^']*)'", detail["ctx"]["expected"] if "ctx" in detail else "")
            return sentences(f"unknown level '{level}'", advice_on(level, valid, "levels"))
        case "value_error":
            return detail["msg"].removeprefix("Value error, ")
        case _:
            return f"{re.sub('^[A-Z][a-z]+ should', 'must', detail['msg'])}, not {detail['input']!r}"


def _valid_keys(path: KeyPath) -> list[str]:
    model: type[BaseModel] = Study
    for key in path:
        fields = {field.alias or name: field for name, field in model.model_fields.items()}
        model = _model_in(fields[str(key)].annotation)
    return [field.alias or name for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel]:  # noqa: ANN401
    if get_origin(annotation) in (Union, UnionType):
        return next(argument for argument in get_args(annotation) if issubclass(argument, BaseModel))
    return annotation


def _written(path: KeyPath) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
